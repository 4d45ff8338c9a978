"""Add the trash for deleted sites, suspended accounts, and erased visitors

Revision: 0026
Follows: 0025
"""

import sqlalchemy as sa
from alembic import op


revision = '0026'
down_revision = '0025'
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.add_column('sites', sa.Column('deleted_at', sa.BigInteger(), nullable=True))
    op.add_column('sites', sa.Column('was_active', sa.Boolean(), server_default=sa.true(), nullable=False))
    op.add_column('accounts', sa.Column('suspended_at', sa.BigInteger(), nullable=True))
    op.add_column('accounts', sa.Column('suspension_reason', sa.String(length=500), server_default=sa.text("''"), nullable=False))
    op.add_column('search_clicks', sa.Column('session_id', sa.String(length=64), nullable=True))
    op.create_table('visitor_erasures',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('visitor', _BIG, autoincrement=False, nullable=False),
    sa.Column('erased_at', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('site_id', 'visitor', name=op.f('pk_visitor_erasures')),
    sqlite_with_rowid=False
    )


def downgrade() -> None:
    op.drop_table('visitor_erasures')
    op.drop_column('search_clicks', 'session_id')
    op.drop_column('accounts', 'suspension_reason')
    op.drop_column('accounts', 'suspended_at')
    with op.batch_alter_table('sites', schema=None) as batch_op:
        batch_op.drop_column('was_active')
        batch_op.drop_column('deleted_at')

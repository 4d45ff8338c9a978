"""Add vectors of documents

Revision: 0027
Follows: 0026
"""

import sqlalchemy as sa
from alembic import op


revision = '0027'
down_revision = '0026'
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.create_table('document_vectors',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('id', sa.String(length=512), nullable=False),
    sa.Column('revision', _BIG, nullable=False),
    sa.Column('model', sa.String(length=255), nullable=False),
    sa.Column('vector', sa.LargeBinary(), nullable=False),
    sa.PrimaryKeyConstraint('site_id', 'id', name=op.f('pk_document_vectors')),
    sqlite_with_rowid=False
    )
    op.add_column('sites', sa.Column('vectors_revision', _BIG, server_default=sa.text('0'), nullable=False))
    op.add_column('sites', sa.Column('vectors_model', sa.String(length=255), server_default=sa.text("''"), nullable=False))
    op.add_column('sites', sa.Column('vectors_wanted_until', sa.BigInteger(), nullable=True))
    op.add_column('search_events', sa.Column('mixed', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    for table in ('scope_days', 'origin_days'):
        op.add_column(table, sa.Column('mixed_searches', _BIG, server_default='0', nullable=False))


def downgrade() -> None:
    for table in ('origin_days', 'scope_days'):
        op.drop_column(table, 'mixed_searches')
    with op.batch_alter_table('search_events', schema=None) as batch_op:
        batch_op.drop_column('mixed')
    with op.batch_alter_table('sites', schema=None) as batch_op:
        batch_op.drop_column('vectors_wanted_until')
        batch_op.drop_column('vectors_model')
        batch_op.drop_column('vectors_revision')
    op.drop_table('document_vectors')

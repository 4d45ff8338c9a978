"""Add the sections that clicks led to

Revision: 0015
Follows: 0014
"""

import sqlalchemy as sa
from alembic import op


revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.create_table('click_anchor_days',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('day', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('query', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('document_key', _BIG, autoincrement=False, nullable=False),
    sa.Column('anchor', sa.String(length=200).with_variant(sa.String(length=200, collation='C'), 'postgresql'), nullable=False),
    sa.Column('clicks', _BIG, nullable=False),
    sa.PrimaryKeyConstraint('site_id', 'day', 'query', 'document_key', 'anchor', name=op.f('pk_click_anchor_days')),
    sqlite_with_rowid=False
    )


def downgrade() -> None:
    op.drop_table('click_anchor_days')

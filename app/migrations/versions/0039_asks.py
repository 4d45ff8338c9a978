"""Add questions that visitors asked a language model

Revision: 0039
Follows: 0038
"""

import sqlalchemy as sa
from alembic import op


revision = '0039'
down_revision = '0038'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
QUERY_TEXT = sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')


def upgrade() -> None:
    op.create_table('asks',
    sa.Column('id', sa.String(length=36), nullable=False),
    sa.Column('site_id', BIG_ID, nullable=False),
    sa.Column('question', QUERY_TEXT, nullable=False),
    sa.Column('occurred_at', sa.BigInteger(), nullable=False),
    sa.Column('answered', sa.Boolean(), nullable=False),
    sa.Column('helpful', sa.Boolean(), nullable=True),
    sa.Column('reason', sa.String(length=500), nullable=True),
    sa.Column('session_id', sa.String(length=64), nullable=True),
    sa.Column('visitor', BIG_ID, nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_asks'))
    )
    op.create_index(op.f('ix_asks_site_id_occurred_at'), 'asks', ['site_id', 'occurred_at'])


def downgrade() -> None:
    op.drop_table('asks')

"""Add queries that the inbox ignores

Revision: 0006
Follows: 0005
"""

import sqlalchemy as sa
from alembic import op


revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('ignored_queries',
    sa.Column('site_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=False, nullable=False),
    sa.Column('query', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('ignored_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['site_id'], ['sites.id'], name=op.f('fk_ignored_queries_site_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('site_id', 'query', name=op.f('pk_ignored_queries')),
    sqlite_with_rowid=False
    )


def downgrade() -> None:
    op.drop_table('ignored_queries')

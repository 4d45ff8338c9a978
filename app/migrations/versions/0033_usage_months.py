"""Add an account's monthly usage, and what it needs from each day

Revision: 0033
Follows: 0032
"""

import sqlalchemy as sa
from alembic import op


revision = '0033'
down_revision = '0032'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('usage_days', sa.Column('refused_searches', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), server_default='0', nullable=False))
    op.add_column('usage_days', sa.Column('pages_crawled', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), server_default='0', nullable=False))
    op.add_column('usage_days', sa.Column('documents_before', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True))
    op.add_column('usage_days', sa.Column('most_documents', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True))
    op.create_table('usage_months',
    sa.Column('account_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('month', sa.Date(), nullable=False),
    sa.Column('searches', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('refused_searches', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('indexing_operations', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('most_documents', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('pages_crawled', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_usage_months_account_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('account_id', 'month', name=op.f('pk_usage_months'))
    )
    op.create_index(op.f('ix_usage_months_month'), 'usage_months', ['month'], unique=False)


def downgrade() -> None:
    op.drop_index(op.f('ix_usage_months_month'), table_name='usage_months')
    op.drop_table('usage_months')
    op.drop_column('usage_days', 'most_documents')
    op.drop_column('usage_days', 'documents_before')
    op.drop_column('usage_days', 'pages_crawled')
    op.drop_column('usage_days', 'refused_searches')

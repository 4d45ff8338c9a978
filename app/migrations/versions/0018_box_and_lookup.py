"""Add tokens of public keys, the host that last used them, and the referrer of each crawled URL

Revision: 0018
Follows: 0017
"""

import sqlalchemy as sa
from alembic import op


revision = '0018'
down_revision = '0017'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('keys', sa.Column('token', sa.String(length=64), nullable=True))
    op.add_column('keys', sa.Column('seen_host', sa.String(length=300), nullable=True))
    op.add_column('keys', sa.Column('seen_at', sa.BigInteger(), nullable=True))
    op.add_column('run_pages', sa.Column('found_on', sa.String(length=2048), nullable=True))
    op.add_column('run_pages', sa.Column('removed', sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    with op.batch_alter_table('run_pages', schema=None) as batch_op:
        batch_op.drop_column('removed')
        batch_op.drop_column('found_on')
    with op.batch_alter_table('keys', schema=None) as batch_op:
        batch_op.drop_column('seen_at')
        batch_op.drop_column('seen_host')
        batch_op.drop_column('token')

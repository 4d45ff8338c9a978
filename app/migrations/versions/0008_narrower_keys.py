"""Add scopes, site restriction, and allowed origins of keys, and private keys seen in web pages

Revision: 0008
Follows: 0007
"""

import sqlalchemy as sa
from alembic import op


revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('keys', schema=None) as batch_op:
        batch_op.add_column(sa.Column('scopes', sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column('site_only', sa.Boolean(), server_default=sa.false(), nullable=False))
        batch_op.add_column(sa.Column('allowed_origins', sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column('exposed_at', sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column('exposed_origin', sa.String(length=300), nullable=True))
        batch_op.add_column(sa.Column('exposure_dismissed', sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    with op.batch_alter_table('keys', schema=None) as batch_op:
        batch_op.drop_column('exposure_dismissed')
        batch_op.drop_column('exposed_origin')
        batch_op.drop_column('exposed_at')
        batch_op.drop_column('allowed_origins')
        batch_op.drop_column('site_only')
        batch_op.drop_column('scopes')

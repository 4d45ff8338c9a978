"""Add the cause of a site's lagging index

Revision: 0013
Follows: 0012
"""

import sqlalchemy as sa
from alembic import op


revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sites', sa.Column('indexing_failed_at', sa.BigInteger(), nullable=True))
    op.add_column('sites', sa.Column('indexing_error', sa.String(length=500), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table('sites', schema=None) as batch_op:
        batch_op.drop_column('indexing_error')
        batch_op.drop_column('indexing_failed_at')

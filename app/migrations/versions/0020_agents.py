"""Add access of AI agents to a site, and the site's description

Revision: 0020
Follows: 0019
"""

import sqlalchemy as sa
from alembic import op


revision = '0020'
down_revision = '0019'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sites', sa.Column('agents', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    op.add_column('sites', sa.Column('description', sa.String(length=500), server_default=sa.text("''"), nullable=False))


def downgrade() -> None:
    with op.batch_alter_table('sites', schema=None) as batch_op:
        batch_op.drop_column('description')
        batch_op.drop_column('agents')

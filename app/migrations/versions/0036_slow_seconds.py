"""Limit the browser's time for slow pages of a run

Revision: 0036
Follows: 0035
"""

import sqlalchemy as sa
from alembic import op


revision = '0036'
down_revision = '0035'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('source_runs', sa.Column('slow_seconds', sa.Double(), server_default=sa.text('0'), nullable=False))


def downgrade() -> None:
    op.drop_column('source_runs', 'slow_seconds')

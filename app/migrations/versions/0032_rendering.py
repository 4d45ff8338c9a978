"""Add pages that a browser draws

Revision: 0032
Follows: 0031
"""

import sqlalchemy as sa
from alembic import op


revision = '0032'
down_revision = '0031'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sources', sa.Column('render', sa.String(length=8), server_default=sa.text("'auto'"), nullable=False))
    op.add_column('source_runs', sa.Column('rendered', sa.Integer(), server_default=sa.text('0'), nullable=False))


def downgrade() -> None:
    op.drop_column('source_runs', 'rendered')
    op.drop_column('sources', 'render')

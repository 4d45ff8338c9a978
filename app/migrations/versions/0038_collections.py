"""Add collections, which search several sites

Revision: 0038
Follows: 0037
"""

import sqlalchemy as sa
from alembic import op


revision = '0038'
down_revision = '0037'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sites', sa.Column('searched_sites', sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.execute('DELETE FROM sites WHERE searched_sites IS NOT NULL')
    op.drop_column('sites', 'searched_sites')

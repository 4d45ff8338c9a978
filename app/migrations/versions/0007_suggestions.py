"""Add suggested queries

Revision: 0007
Follows: 0006
"""

import sqlalchemy as sa
from alembic import op


revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None

_SUGGESTED = sa.text('found_visitors_30 >= 3')


def upgrade() -> None:
    op.create_index(
        'ix_query_windows_suggested',
        'query_windows',
        ['scope', sa.text('found_visitors_30 DESC'), 'query'],
        sqlite_where=_SUGGESTED,
        postgresql_where=_SUGGESTED,
    )


def downgrade() -> None:
    op.drop_index('ix_query_windows_suggested', table_name='query_windows')

"""Add custom fields of crawled pages

Revision: 0014
Follows: 0013
"""

import sqlalchemy as sa
from alembic import op


revision = '0014'
down_revision = '0013'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sources', sa.Column('fields', sa.JSON(), server_default=sa.text("'[]'"), nullable=False))
    op.add_column('source_pages', sa.Column('path_section', sa.String(length=255), nullable=True))
    # More is read from pages now, so the next run must fetch all of them, changed or not.
    op.execute('UPDATE source_pages SET etag = NULL, last_modified = NULL, digest = NULL')


def downgrade() -> None:
    with op.batch_alter_table('source_pages', schema=None) as batch_op:
        batch_op.drop_column('path_section')
    with op.batch_alter_table('sources', schema=None) as batch_op:
        batch_op.drop_column('fields')

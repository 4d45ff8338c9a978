"""Add alternatives to titles that pages share, and the beginning that titles share

Revision: 0031
Follows: 0030
"""

import sqlalchemy as sa
from alembic import op


revision = '0031'
down_revision = '0030'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sources', sa.Column('title_prefix', sa.String(length=1024), nullable=True))
    op.add_column('source_pages', sa.Column('headings', sa.String(length=1024), nullable=True))


def downgrade() -> None:
    op.drop_column('source_pages', 'headings')
    op.drop_column('sources', 'title_prefix')

"""Add hosts and deploy hooks of sources, and runs queued behind the current one

Revision: 0021
Follows: 0020
"""

from urllib.parse import urlsplit

import sqlalchemy as sa
from alembic import op


revision = '0021'
down_revision = '0020'
branch_labels = None
depends_on = None

_SOURCES = sa.table('sources', sa.column('id', sa.String), sa.column('url', sa.String), sa.column('host', sa.String))


def upgrade() -> None:
    op.add_column('sources', sa.Column('host', sa.String(length=261), server_default=sa.text("''"), nullable=False))
    op.add_column('sources', sa.Column('hook_salt', sa.String(length=32), server_default=sa.text("''"), nullable=False))
    op.add_column('sources', sa.Column('next_options', sa.JSON(), nullable=True))
    connection = op.get_bind()
    for source_id, url in connection.execute(sa.select(_SOURCES.c.id, _SOURCES.c.url)).all():
        host = urlsplit(url).netloc
        connection.execute(_SOURCES.update().where(_SOURCES.c.id == source_id).values(host=host))
    with op.batch_alter_table('sources', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_sources_host'), ['host'], unique=False)


def downgrade() -> None:
    with op.batch_alter_table('sources', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_sources_host'))
        batch_op.drop_column('next_options')
        batch_op.drop_column('hook_salt')
        batch_op.drop_column('host')

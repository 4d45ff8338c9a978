"""Identify indexes by engine and name instead of folder or host

Revision: 0002
Follows: 0001
"""

import secrets

import sqlalchemy as sa
from alembic import op


revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sites', sa.Column('index_tag', sa.String(length=16), nullable=False, server_default=''))
    op.add_column('sites', sa.Column('engine_index', sa.String(length=64), nullable=False, server_default=''))

    sites = sa.table('sites', *map(sa.column, ('id', 'index_generation', 'index_tag', 'engine_index')))
    connection = op.get_bind()
    # Existing indexes keep their names. Later ones get a random tag, so that no other installation has the same names.
    for site_id, generation in connection.execute(sa.select(sites.c.id, sites.c.index_generation)).all():
        connection.execute(
            sites.update()
            .where(sites.c.id == site_id)
            .values(index_tag=secrets.token_hex(5), engine_index=f'site_{site_id}_{generation}')
        )
    # Remove the folder or host: 'tantivy:/var/indexes' becomes 'tantivy'.
    for name in ('sites', 'engine_tasks', 'engine_credentials'):
        table = sa.table(name, sa.column('engine'))
        for engine in connection.scalars(sa.select(table.c.engine).distinct()).all():
            connection.execute(table.update().where(table.c.engine == engine).values(engine=engine.partition(':')[0]))


def downgrade() -> None:
    raise NotImplementedError('The folders and hosts of the engines are no longer known: restore a backup made before.')

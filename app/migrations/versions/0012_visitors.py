"""Distinguish visitors by IP address, and store the result of a query's last search

Revision: 0012
Follows: 0011
"""

import sqlalchemy as sa
from alembic import op


revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None

_PERIODS = (7, 30, 90)
_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, _ID, server_default='0', nullable=False)


def _index_suggested(column: str) -> None:
    condition = sa.text(f'{column} >= 3')
    op.create_index(
        'ix_query_windows_suggested',
        'query_windows',
        ['scope', sa.text(f'{column} DESC'), 'query'],
        sqlite_where=condition,
        postgresql_where=condition,
    )


def upgrade() -> None:
    op.create_table('visitor_keys',
    sa.Column('period', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('key', sa.LargeBinary(), nullable=False),
    sa.PrimaryKeyConstraint('period', name=op.f('pk_visitor_keys'))
    )
    op.add_column('search_events', sa.Column('visitor', _ID, nullable=True))
    op.create_index(op.f('ix_query_visits_site_id_visit_day'), 'query_visits', ['site_id', 'visit', 'day'], unique=False)

    op.add_column('query_days', _number('visitors'))
    for days in _PERIODS:
        op.add_column('query_windows', _number(f'visitors_{days}'))
    op.add_column('query_windows', sa.Column('last_run_at', sa.BigInteger(), nullable=True))
    op.add_column('query_windows', sa.Column('last_matched', sa.String(length=16), nullable=True))
    # Until now, each session of a day was a visitor. They leave the windows together with their days.
    op.execute('UPDATE query_days SET visitors = found_visitors WHERE found_visitors > 0')
    op.execute(
        f"UPDATE query_windows SET {', '.join(f'visitors_{days} = found_visitors_{days}' for days in _PERIODS)}"
        ' WHERE found_visitors_90 > 0'
    )
    op.drop_index('ix_query_windows_suggested', table_name='query_windows')
    _index_suggested('visitors_30')


def downgrade() -> None:
    op.drop_index('ix_query_windows_suggested', table_name='query_windows')
    _index_suggested('found_visitors_30')
    op.drop_column('query_windows', 'last_matched')
    op.drop_column('query_windows', 'last_run_at')
    for days in _PERIODS:
        op.drop_column('query_windows', f'visitors_{days}')
    op.drop_column('query_days', 'visitors')
    op.drop_index(op.f('ix_query_visits_site_id_visit_day'), table_name='query_visits')
    op.drop_column('search_events', 'visitor')
    op.drop_table('visitor_keys')

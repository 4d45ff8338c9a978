"""Compute analytics from days, and drop the windows

Revision: 0030
Follows: 0029
"""

import sqlalchemy as sa
from alembic import op


revision = '0030'
down_revision = '0029'
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_QUERY = sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')
_PERIODS = (7, 30, 90)
_SITE_KINDS = {
    'searches': False, 'zero_results': False, 'responses': False, 'response_ms': False, 'partial_results': True,
    'clicks': True, 'clicked_searches': True, 'positioned_clicks': True, 'click_positions': True, 'mixed_searches': True,
}
"""Column of ``site_days`` to whether it has a default."""
_QUERY_KINDS = (
    'searches', 'zero_results', 'partial_results', 'clicks', 'clicked_searches', 'positioned_clicks',
    'click_positions', 'visitors', 'found_visitors', 'missed_visitors',
)


def _create_days(table: str, key: str) -> None:
    op.create_table(table,
    sa.Column(key, _BIG, autoincrement=False, nullable=False),
    sa.Column('day', sa.Integer(), autoincrement=False, nullable=False),
    *(
        sa.Column(kind, _BIG, server_default='0' if has_default else None, nullable=False)
        for kind, has_default in _SITE_KINDS.items()
    ),
    sa.PrimaryKeyConstraint(key, 'day', name=op.f(f'pk_{table}')),
    sqlite_with_rowid=False
    )


def upgrade() -> None:
    kinds = ', '.join(_SITE_KINDS)
    _create_days('site_days', 'site_id')
    op.execute(f'INSERT INTO site_days (site_id, day, {kinds}) SELECT scope, day, {kinds} FROM scope_days WHERE scope > 0')
    op.drop_table('scope_days')

    op.add_column('query_days', sa.Column('last_run', _BIG, nullable=True))
    # Until now, the last run of a query was stored once. It belongs to the day on which it happened.
    op.execute(
        """
        UPDATE query_days SET last_run = held.last_run_at * 8
            + CASE held.last_matched WHEN 'all' THEN 1 WHEN 'corrected' THEN 3 ELSE 2 END
        FROM query_windows AS held
        WHERE held.scope = query_days.site_id AND held.query = query_days.query AND held.last_run_at IS NOT NULL
            AND held.last_run_at / 86400000000 = query_days.day
        """
    )
    op.drop_table('window_starts')
    op.drop_table('scope_windows')
    op.drop_table('query_windows')
    op.drop_column('event_removals', 'account_id')


def downgrade() -> None:
    """Recreate the tables, for tests of earlier migrations. The windows are empty, and accounts have no totals."""
    op.add_column('event_removals', sa.Column('account_id', _BIG, server_default='0', nullable=False))
    op.create_table('query_windows',
    sa.Column('scope', _BIG, autoincrement=False, nullable=False),
    sa.Column('query', _QUERY, nullable=False),
    *(sa.Column(f'{kind}_{days}', _BIG, server_default='0', nullable=False) for kind in _QUERY_KINDS for days in _PERIODS),
    sa.Column('last_run_at', sa.BigInteger(), nullable=True),
    sa.Column('last_matched', sa.String(length=16), nullable=True),
    sa.PrimaryKeyConstraint('scope', 'query', name=op.f('pk_query_windows')),
    sqlite_with_rowid=False
    )
    rankings = {f'{kind}_{days}': f'{kind}_{days}' for kind in ('searches', 'zero_results', 'partial_results') for days in _PERIODS}
    rankings |= {f'no_clicks_{days}': f'searches_{days}' for days in _PERIODS} | {'suggested': 'visitors_30'}
    for name, column in rankings.items():
        op.create_index(f'ix_query_windows_{name}', 'query_windows', ['scope', sa.text(f'{column} DESC'), 'query'])
    op.create_table('scope_windows',
    sa.Column('scope', _BIG, autoincrement=False, nullable=False),
    *(sa.Column(f'queries_{days}', _BIG, nullable=False) for days in _PERIODS),
    sa.PrimaryKeyConstraint('scope', name=op.f('pk_scope_windows'))
    )
    op.create_table('window_starts',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('period', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('account_id', _BIG, nullable=False),
    sa.Column('day', sa.Integer(), nullable=False),
    sa.Column('query', _QUERY, nullable=False),
    sa.PrimaryKeyConstraint('site_id', 'period', name=op.f('pk_window_starts'))
    )
    op.create_index(op.f('ix_window_starts_account_id_period'), 'window_starts', ['account_id', 'period'], unique=False)
    op.drop_column('query_days', 'last_run')
    kinds = ', '.join(_SITE_KINDS)
    _create_days('scope_days', 'scope')
    op.execute(f'INSERT INTO scope_days (scope, day, {kinds}) SELECT site_id, day, {kinds} FROM site_days')
    op.drop_table('site_days')

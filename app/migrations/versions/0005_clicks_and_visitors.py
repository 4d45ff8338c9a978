"""Add clicks, visitors, and searches that matched only some words

Revision: 0005
Follows: 0004
"""

import sqlalchemy as sa
from alembic import op


revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_QUERY = sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')
_DOCUMENT_ID = sa.String(length=512).with_variant(sa.String(length=512, collation='C'), 'postgresql')
_PERIODS = (7, 30, 90)
_OF_SCOPES = ('partial_results', 'clicks', 'clicked_searches', 'positioned_clicks', 'click_positions')
_OF_QUERIES = (*_OF_SCOPES, 'found_visitors', 'missed_visitors')
_COLUMNS = {
    'scope_days': _OF_SCOPES,
    'query_days': _OF_QUERIES,
    'query_windows': tuple(f'{kind}_{days}' for kind in _OF_QUERIES for days in _PERIODS),
}
_RANKINGS = {
    **{f'partial_results_{days}': (f'partial_results_{days}', f'partial_results_{days} > 0') for days in _PERIODS},
    **{
        f'no_clicks_{days}': (f'searches_{days}', f'clicks_{days} = 0 AND searches_{days} > zero_results_{days}')
        for days in _PERIODS
    },
}
"""Name of a ranking to its column and condition."""


def upgrade() -> None:
    op.add_column('search_events', sa.Column('matched', sa.String(length=16), nullable=True))
    for table, names in _COLUMNS.items():
        for name in names:
            op.add_column(table, sa.Column(name, _BIG, server_default='0', nullable=False))
    for name, (column, condition) in _RANKINGS.items():
        where = sa.text(condition)
        op.create_index(
            f'ix_query_windows_{name}',
            'query_windows',
            ['scope', sa.text(f'{column} DESC'), 'query'],
            sqlite_where=where,
            postgresql_where=where,
        )

    op.create_table('search_clicks',
    sa.Column('id', _BIG, nullable=False),
    sa.Column('site_id', _BIG, nullable=False),
    sa.Column('search_key', _BIG, nullable=False),
    sa.Column('query', _QUERY, nullable=False),
    sa.Column('document_id', _DOCUMENT_ID, nullable=False),
    sa.Column('position', _BIG, nullable=True),
    sa.Column('occurred_at', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_search_clicks')),
    sa.UniqueConstraint('site_id', 'search_key', 'document_id', name=op.f('uq_search_clicks_site_id_search_key_document_id'))
    )
    op.create_index(op.f('ix_search_clicks_site_id_occurred_at'), 'search_clicks', ['site_id', 'occurred_at'], unique=False)

    op.create_table('click_days',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('day', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('query', _QUERY, nullable=False),
    sa.Column('document_id', _DOCUMENT_ID, nullable=False),
    sa.Column('clicks', _BIG, nullable=False),
    sa.Column('positioned_clicks', _BIG, nullable=False),
    sa.Column('click_positions', _BIG, nullable=False),
    sa.PrimaryKeyConstraint('site_id', 'day', 'query', 'document_id', name=op.f('pk_click_days')),
    sqlite_with_rowid=False
    )

    op.create_table('query_visits',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('day', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('visit', _BIG, autoincrement=False, nullable=False),
    sa.Column('events', _BIG, nullable=False),
    sa.PrimaryKeyConstraint('site_id', 'day', 'visit', name=op.f('pk_query_visits')),
    sqlite_with_rowid=False
    )


def downgrade() -> None:
    op.drop_table('query_visits')
    op.drop_table('click_days')
    op.drop_table('search_clicks')
    for name in _RANKINGS:
        op.drop_index(f'ix_query_windows_{name}', table_name='query_windows')
    for table, names in _COLUMNS.items():
        for name in names:
            op.drop_column(table, name)
    op.drop_column('search_events', 'matched')

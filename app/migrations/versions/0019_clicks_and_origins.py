"""Add visitors of clicks, origins of searches, and lessons from clicks

Revision: 0019
Follows: 0018
"""

import sqlalchemy as sa
from alembic import op


revision = '0019'
down_revision = '0018'
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
_PAGE = sa.String(length=200).with_variant(sa.String(length=200, collation='C'), 'postgresql')


def upgrade() -> None:
    op.add_column('search_events', sa.Column('channel', sa.String(length=8), nullable=True))
    op.add_column('search_events', sa.Column('page', _PAGE, nullable=True))
    op.add_column('search_clicks', sa.Column('visitor', _BIG, nullable=True))
    op.add_column('search_clicks', sa.Column('channel', sa.String(length=8), nullable=True))
    op.create_table('origin_days',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('day', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('channel', sa.String(length=8), nullable=False),
    sa.Column('page', _PAGE, nullable=False),
    sa.Column('searches', _BIG, nullable=False),
    sa.Column('zero_results', _BIG, nullable=False),
    sa.Column('partial_results', _BIG, nullable=False),
    sa.Column('clicks', _BIG, nullable=False),
    sa.Column('clicked_searches', _BIG, nullable=False),
    sa.Column('positioned_clicks', _BIG, nullable=False),
    sa.Column('click_positions', _BIG, nullable=False),
    sa.Column('responses', _BIG, nullable=False),
    sa.Column('response_ms', _BIG, nullable=False),
    sa.PrimaryKeyConstraint('site_id', 'day', 'channel', 'page', name=op.f('pk_origin_days')),
    sqlite_with_rowid=False
    )
    op.create_table('click_lessons',
    sa.Column('site_id', _BIG, autoincrement=False, nullable=False),
    sa.Column('learned_day', sa.Integer(), nullable=True),
    sa.Column('clicks_since', sa.BigInteger(), nullable=True),
    sa.Column('gains', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(['site_id'], ['sites.id'], name=op.f('fk_click_lessons_site_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('site_id', name=op.f('pk_click_lessons'))
    )


def downgrade() -> None:
    op.drop_table('click_lessons')
    op.drop_table('origin_days')
    with op.batch_alter_table('search_clicks', schema=None) as batch_op:
        batch_op.drop_column('channel')
        batch_op.drop_column('visitor')
    with op.batch_alter_table('search_events', schema=None) as batch_op:
        batch_op.drop_column('page')
        batch_op.drop_column('channel')

"""Add the mail queue, password resets, quota warnings, and the weekly digest

Revision: 0009
Follows: 0008
"""

import sqlalchemy as sa
from alembic import op


revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.create_table('mails',
    sa.Column('id', BIG_ID, nullable=False),
    sa.Column('account_id', BIG_ID, nullable=True),
    sa.Column('kind', sa.String(length=32), nullable=False),
    sa.Column('recipient', sa.String(length=254), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('html', sa.Text(), nullable=False),
    sa.Column('unsubscribe_url', sa.Text(), nullable=False),
    sa.Column('message_key', sa.String(length=32), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('due_at', sa.BigInteger(), nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_mails_account_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_mails')),
    sa.UniqueConstraint('message_key', name=op.f('uq_mails_message_key'))
    )
    op.create_index(op.f('ix_mails_account_id'), 'mails', ['account_id'])
    op.create_index(op.f('ix_mails_expires_at'), 'mails', ['expires_at'])
    op.create_table('password_resets',
    sa.Column('token_hash', sa.String(length=64), nullable=False),
    sa.Column('account_id', BIG_ID, nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(
        ['account_id'], ['accounts.id'], name=op.f('fk_password_resets_account_id'), ondelete='CASCADE'
    ),
    sa.PrimaryKeyConstraint('token_hash', name=op.f('pk_password_resets'))
    )
    op.create_index(op.f('ix_password_resets_account_id'), 'password_resets', ['account_id'])
    op.create_index(op.f('ix_password_resets_expires_at'), 'password_resets', ['expires_at'])
    op.create_table('quota_warnings',
    sa.Column('account_id', BIG_ID, autoincrement=False, nullable=False),
    sa.Column('quota', sa.String(length=16), nullable=False),
    sa.Column('period', sa.String(length=10), nullable=False),
    sa.Column('allowed', BIG_ID, autoincrement=False, nullable=False),
    sa.Column('percent', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('warned_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(
        ['account_id'], ['accounts.id'], name=op.f('fk_quota_warnings_account_id'), ondelete='CASCADE'
    ),
    sa.PrimaryKeyConstraint(
        'account_id', 'quota', 'period', 'allowed', 'percent', name=op.f('pk_quota_warnings')
    ),
    sqlite_with_rowid=False
    )
    op.add_column('accounts', sa.Column('weekly_digest', sa.Boolean(), server_default=sa.true(), nullable=False))
    op.add_column('accounts', sa.Column('digest_week', sa.Date(), nullable=True))


def downgrade() -> None:
    op.drop_column('accounts', 'digest_week')
    op.drop_column('accounts', 'weekly_digest')
    op.drop_table('quota_warnings')
    op.drop_table('password_resets')
    op.drop_table('mails')

"""Add changes of email addresses, and the links that undo them

Revision: 0011
Follows: 0010
"""

import sqlalchemy as sa
from alembic import op


revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.create_table('email_changes',
    sa.Column('id', BIG_ID, nullable=False),
    sa.Column('member_id', BIG_ID, nullable=False),
    sa.Column('email', sa.String(length=254), nullable=False),
    sa.Column('email_key', sa.String(length=254), nullable=False),
    sa.Column('by_key', sa.Boolean(), nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(
        ['member_id'], ['members.id'], name=op.f('fk_email_changes_member_id'), ondelete='CASCADE'
    ),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_email_changes')),
    sqlite_autoincrement=True
    )
    op.create_index(op.f('ix_email_changes_email_key'), 'email_changes', ['email_key'])
    op.create_index(op.f('ix_email_changes_expires_at'), 'email_changes', ['expires_at'])
    op.create_index(op.f('ix_email_changes_member_id'), 'email_changes', ['member_id'])
    op.create_table('email_change_links',
    sa.Column('token_hash', sa.String(length=64), nullable=False),
    sa.Column('change_id', BIG_ID, nullable=False),
    sa.ForeignKeyConstraint(
        ['change_id'], ['email_changes.id'], name=op.f('fk_email_change_links_change_id'), ondelete='CASCADE'
    ),
    sa.PrimaryKeyConstraint('token_hash', name=op.f('pk_email_change_links'))
    )
    op.create_index(op.f('ix_email_change_links_change_id'), 'email_change_links', ['change_id'])


def downgrade() -> None:
    op.drop_table('email_change_links')
    op.drop_table('email_changes')

"""Add OpenID Connect identities, confirmed email addresses, and addresses in several accounts

Revision: 0025
Follows: 0024
"""

import sqlalchemy as sa
from alembic import op


revision = '0025'
down_revision = '0024'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.add_column('accounts', sa.Column('confirm_by', sa.BigInteger(), nullable=True))
    op.add_column('members', sa.Column('shared_email_key', sa.String(length=254), nullable=True))
    op.add_column('members', sa.Column('email_confirmed', sa.Boolean(), server_default=sa.true(), nullable=False))
    op.add_column('members', sa.Column('email_by_key', sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index(op.f('ix_members_shared_email_key'), 'members', ['shared_email_key'])
    op.create_table('identities',
    sa.Column('member_id', BIG_ID, autoincrement=False, nullable=False),
    sa.Column('issuer', sa.String(length=255), nullable=False),
    sa.Column('subject', sa.String(length=255), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['member_id'], ['members.id'], name=op.f('fk_identities_member_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('member_id', 'issuer', name=op.f('pk_identities')),
    sqlite_with_rowid=False
    )
    op.create_index(op.f('ix_identities_issuer_subject'), 'identities', ['issuer', 'subject'])


def downgrade() -> None:
    op.drop_table('identities')
    op.drop_index(op.f('ix_members_shared_email_key'), 'members')
    op.drop_column('members', 'email_by_key')
    op.drop_column('members', 'email_confirmed')
    op.drop_column('members', 'shared_email_key')
    op.drop_column('accounts', 'confirm_by')

"""Add members with their own logins, invitations, and the audit log

Revision: 0010
Follows: 0009
"""

import sqlalchemy as sa
from alembic import op


revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.create_table('members',
    sa.Column('id', _ID, nullable=False),
    sa.Column('account_id', _ID, nullable=False),
    sa.Column('name', sa.String(length=100), nullable=False),
    sa.Column('email', sa.String(length=254), nullable=False),
    sa.Column('email_key', sa.String(length=254), nullable=False),
    sa.Column('password_hash', sa.String(length=255), nullable=False),
    sa.Column('role', sa.String(length=16), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_members_account_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_members')),
    sa.UniqueConstraint('email_key', name=op.f('uq_members_email_key')),
    sqlite_autoincrement=True
    )
    op.create_index(op.f('ix_members_account_id'), 'members', ['account_id'], unique=False)
    op.execute(
        "INSERT INTO members (account_id, name, email, email_key, password_hash, role, created_at)"
        " SELECT id, name, email, email_key, password_hash, 'owner', created_at FROM accounts ORDER BY id"
    )
    op.execute("UPDATE accounts SET password_hash = ''")

    with op.batch_alter_table('sessions', schema=None) as batch_op:
        batch_op.add_column(sa.Column('member_id', _ID, nullable=True))
    op.execute(
        "UPDATE sessions SET member_id ="
        " (SELECT members.id FROM members WHERE members.account_id = sessions.account_id)"
    )
    with op.batch_alter_table('sessions', schema=None) as batch_op:
        batch_op.alter_column('member_id', existing_type=_ID, nullable=False)
        batch_op.create_foreign_key(
            batch_op.f('fk_sessions_member_id'), 'members', ['member_id'], ['id'], ondelete='CASCADE'
        )
        batch_op.create_index(batch_op.f('ix_sessions_member_id'), ['member_id'], unique=False)

    # Password resets now belong to members. Existing ones are dropped, since they would expire within half an hour.
    op.drop_table('password_resets')
    op.create_table('password_resets',
    sa.Column('token_hash', sa.String(length=64), nullable=False),
    sa.Column('member_id', _ID, nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(
        ['member_id'], ['members.id'], name=op.f('fk_password_resets_member_id'), ondelete='CASCADE'
    ),
    sa.PrimaryKeyConstraint('token_hash', name=op.f('pk_password_resets'))
    )
    op.create_index(op.f('ix_password_resets_member_id'), 'password_resets', ['member_id'])
    op.create_index(op.f('ix_password_resets_expires_at'), 'password_resets', ['expires_at'])

    op.create_table('invitations',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('account_id', _ID, nullable=False),
    sa.Column('email', sa.String(length=254), nullable=False),
    sa.Column('email_key', sa.String(length=254), nullable=False),
    sa.Column('role', sa.String(length=16), nullable=False),
    sa.Column('token_hash', sa.String(length=64), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['account_id'], ['accounts.id'], name=op.f('fk_invitations_account_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_invitations')),
    sa.UniqueConstraint('account_id', 'email_key', name=op.f('uq_invitations_account_id_email_key')),
    sa.UniqueConstraint('token_hash', name=op.f('uq_invitations_token_hash'))
    )
    op.create_index(op.f('ix_invitations_expires_at'), 'invitations', ['expires_at'], unique=False)

    op.create_table('audit_entries',
    sa.Column('id', _ID, nullable=False),
    sa.Column('account_id', _ID, nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('actor_kind', sa.String(length=16), nullable=False),
    sa.Column('actor_id', sa.String(length=32), nullable=True),
    sa.Column('actor_name', sa.String(length=300), nullable=False),
    sa.Column('address', sa.String(length=64), nullable=True),
    sa.Column('action', sa.String(length=16), nullable=False),
    sa.Column('kind', sa.String(length=24), nullable=False),
    sa.Column('object_id', sa.String(length=32), nullable=False),
    sa.Column('object_name', sa.String(length=300), nullable=False),
    sa.Column('site_id', _ID, nullable=True),
    sa.Column('changes', sa.JSON(), nullable=False),
    sa.ForeignKeyConstraint(
        ['account_id'], ['accounts.id'], name=op.f('fk_audit_entries_account_id'), ondelete='CASCADE'
    ),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_audit_entries')),
    sqlite_autoincrement=True
    )
    op.create_index(op.f('ix_audit_entries_account_id_id'), 'audit_entries', ['account_id', 'id'], unique=False)
    op.create_index(op.f('ix_audit_entries_created_at'), 'audit_entries', ['created_at'], unique=False)


def downgrade() -> None:
    op.drop_table('audit_entries')
    op.drop_table('invitations')
    op.drop_table('password_resets')
    op.create_table('password_resets',
    sa.Column('token_hash', sa.String(length=64), nullable=False),
    sa.Column('account_id', _ID, nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(
        ['account_id'], ['accounts.id'], name=op.f('fk_password_resets_account_id'), ondelete='CASCADE'
    ),
    sa.PrimaryKeyConstraint('token_hash', name=op.f('pk_password_resets'))
    )
    op.create_index(op.f('ix_password_resets_account_id'), 'password_resets', ['account_id'])
    op.create_index(op.f('ix_password_resets_expires_at'), 'password_resets', ['expires_at'])
    # Only the first owner of each account can log in afterwards.
    op.execute(
        "UPDATE accounts SET password_hash ="
        " (SELECT members.password_hash FROM members WHERE members.email_key = accounts.email_key)"
    )
    op.execute(
        "DELETE FROM sessions WHERE member_id NOT IN"
        " (SELECT members.id FROM members JOIN accounts ON accounts.email_key = members.email_key)"
    )
    with op.batch_alter_table('sessions', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_sessions_member_id'))
        batch_op.drop_constraint(batch_op.f('fk_sessions_member_id'), type_='foreignkey')
        batch_op.drop_column('member_id')
    op.drop_table('members')

"""Add two-factor authentication, and the browser and network of sessions

Revision: 0024
Follows: 0022
"""

import sqlalchemy as sa
from alembic import op


revision = '0024'
down_revision = '0022'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('members', sa.Column('codes_since', sa.BigInteger(), nullable=True))
    op.add_column('members', sa.Column('codes_salt', sa.String(length=32), nullable=True))
    op.add_column('members', sa.Column('codes_step', sa.Integer(), server_default='0', nullable=False))
    op.add_column('members', sa.Column('recovery_hashes', sa.JSON(), server_default=sa.text("'[]'"), nullable=False))
    op.add_column('members', sa.Column('new_codes_salt', sa.String(length=32), nullable=True))
    op.add_column('members', sa.Column('new_codes_until', sa.BigInteger(), nullable=True))
    op.add_column('sessions', sa.Column('browser', sa.String(length=60), server_default=sa.text("''"), nullable=False))
    op.add_column('sessions', sa.Column('address', sa.String(length=64), server_default=sa.text("''"), nullable=False))


def downgrade() -> None:
    # Not in batch mode, which copies the table: dropping the old one would delete the sessions by cascade.
    for table, names in (
        ('sessions', ('address', 'browser')),
        (
            'members',
            ('new_codes_until', 'new_codes_salt', 'recovery_hashes', 'codes_step', 'codes_salt', 'codes_since'),
        ),
    ):
        for name in names:
            op.drop_column(table, name)

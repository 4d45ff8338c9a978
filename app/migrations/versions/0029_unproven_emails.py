"""Record mailed invitations and whether a changed address was confirmed; drop the hosts of sources

Revision: 0029
Follows: 0027
"""

import sqlalchemy as sa
from alembic import op


revision = '0029'
down_revision = '0027'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('invitations', sa.Column('is_mailed', sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column('email_changes', sa.Column('was_confirmed', sa.Boolean(), server_default=sa.true(), nullable=False))
    op.drop_index(op.f('ix_sources_host'), 'sources')
    op.drop_column('sources', 'host')


def downgrade() -> None:
    op.add_column('sources', sa.Column('host', sa.String(length=261), server_default=sa.text("''"), nullable=False))
    op.create_index(op.f('ix_sources_host'), 'sources', ['host'])
    op.drop_column('email_changes', 'was_confirmed')
    op.drop_column('invitations', 'is_mailed')

"""Record how sessions were opened, and end those from before two-factor authentication

Revision: 0037
Follows: 0036
"""

import sqlalchemy as sa
from alembic import op


revision = '0037'
down_revision = '0036'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('sessions', sa.Column('opened_with', sa.String(length=16), server_default=sa.text("''"), nullable=False))
    op.add_column('sessions', sa.Column('code_at', sa.BigInteger(), nullable=True))
    op.execute(
        'DELETE FROM sessions WHERE EXISTS '
        '(SELECT 1 FROM members WHERE members.id = sessions.member_id AND members.codes_since > sessions.created_at)'
    )


def downgrade() -> None:
    op.drop_column('sessions', 'code_at')
    op.drop_column('sessions', 'opened_with')

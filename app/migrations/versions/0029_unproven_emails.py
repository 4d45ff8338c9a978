"""invitations by mail, and whether a changed e-mail had been confirmed

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


def downgrade() -> None:
    with op.batch_alter_table('email_changes', schema=None) as batch_op:
        batch_op.drop_column('was_confirmed')
    with op.batch_alter_table('invitations', schema=None) as batch_op:
        batch_op.drop_column('is_mailed')

"""Count changed documents per account and day

Revision: 0003
Follows: 0002
"""

import sqlalchemy as sa
from alembic import op


revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('usage_days', schema=None) as batch_op:
        batch_op.add_column(sa.Column('documents_changed', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), server_default='0', nullable=False))


def downgrade() -> None:
    with op.batch_alter_table('usage_days', schema=None) as batch_op:
        batch_op.drop_column('documents_changed')

"""Store previous search settings in the audit log

Revision: 0017
Follows: 0016
"""

import sqlalchemy as sa
from alembic import op


revision = '0017'
down_revision = '0016'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('audit_entries', sa.Column('state', sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table('audit_entries', schema=None) as batch_op:
        batch_op.drop_column('state')

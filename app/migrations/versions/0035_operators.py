"""Let members be operators of the service

Revision: 0035
Follows: 0034
"""

import sqlalchemy as sa
from alembic import op


revision = '0035'
down_revision = '0034'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('members', sa.Column('operator_since', sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column('members', 'operator_since')

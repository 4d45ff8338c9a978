"""Let a webhook belong to the operator instead of an account

Revision: 0034
Follows: 0033
"""

import sqlalchemy as sa
from alembic import op


revision = '0034'
down_revision = '0033'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    _alter(nullable=True)


def downgrade() -> None:
    op.execute("DELETE FROM webhooks WHERE account_id IS NULL")
    _alter(nullable=False)


def _alter(*, nullable: bool) -> None:
    is_sqlite = op.get_bind().dialect.name == 'sqlite'
    if is_sqlite:
        # SQLite copies the table and drops the old one, which would delete the deliveries, too.
        op.execute("CREATE TEMPORARY TABLE kept_deliveries AS SELECT * FROM webhook_deliveries")
    with op.batch_alter_table('webhooks', schema=None) as batch_op:
        batch_op.alter_column('account_id', existing_type=BIG_ID, nullable=nullable)
    if is_sqlite:
        op.execute("INSERT INTO webhook_deliveries SELECT * FROM kept_deliveries")
        op.execute("DROP TABLE kept_deliveries")

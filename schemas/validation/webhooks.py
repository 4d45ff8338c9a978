"""Events of customers' webhooks, and of the operator's."""

from __future__ import annotations

RUN_FINISHED = "run.finished"
RUN_FAILED = "run.failed"
QUOTA_WARNING = "quota.warning"
KEY_EXPOSED = "key.exposed"

EVENTS = (RUN_FINISHED, RUN_FAILED, QUOTA_WARNING, KEY_EXPOSED)

ACCOUNT_CREATED = "account.created"
ACCOUNT_DELETED = "account.deleted"
ACCOUNT_SUSPENDED = "account.suspended"
PLAN_CHANGED = "plan.changed"
QUOTA_REACHED = "quota.reached"

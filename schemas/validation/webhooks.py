"""Events of webhooks."""

from __future__ import annotations

RUN_FINISHED = "run.finished"
RUN_FAILED = "run.failed"
QUOTA_WARNING = "quota.warning"
KEY_EXPOSED = "key.exposed"

EVENTS = (RUN_FINISHED, RUN_FAILED, QUOTA_WARNING, KEY_EXPOSED)

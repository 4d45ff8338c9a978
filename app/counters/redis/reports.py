"""Reports of searches and indexing operations: one script each, executed at most once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.counters.metering import IDEMPOTENCY_SECONDS, day_from_number, milliseconds
from app.counters.redis import names
from app.counters.redis.client import Step
from app.counters.redis.scripts import REPORT
from app.counters.redis.server import DAY_KEPT_MS, SLOT_KEPT_MS, Server
from app.counters.values import IdempotencyKey, Operation, ReportOutcome, ReportStatus, ResponseLost

_STATUSES = (ReportStatus.RECORDED, ReportStatus.DUPLICATE, ReportStatus.CONFLICT)
_UNRAISED = 3


class Reports:
    """Reports to one server, by the rules of :class:`~app.counters.base.CounterStore`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def record(
        self,
        account_id: int,
        site_id: int,
        operation: Operation,
        count: int,
        *,
        capped: bool,
        idempotency: IdempotencyKey | None,
        now: float,
    ) -> ReportOutcome:
        """Record a report. If its response is lost, a report without an idempotency key is undone later."""
        step = self._server.steps.begin()
        report = partial(self._report, account_id, site_id, operation, capped, milliseconds(now))
        try:
            outcome = report(step, count, idempotency)
        except ResponseLost:
            if idempotency is None:
                self._server.steps.postpone(partial(self._cancel, step, partial(report, count=-count)))
            raise
        self._server.steps.give_back(step)
        return outcome

    def _report(
        self,
        account_id: int,
        site_id: int,
        operation: Operation,
        capped: bool,
        now_ms: int,
        step: Step,
        count: int,
        idempotency: IdempotencyKey | None = None,
    ) -> ReportOutcome:
        day = now_ms // 86_400_000
        keys = [
            names.day(account_id, day),
            names.sites(account_id, day),
            *names.reports(account_id),
            names.INCARNATION,
            step.slot,
        ]
        arguments = [
            now_ms,
            operation,
            count,
            int(capped),
            site_id,
            DAY_KEPT_MS,
            *(idempotency or ("", "")),
            IDEMPOTENCY_SECONDS * 1000,
            step.number,
            SLOT_KEPT_MS,
        ]
        today = day_from_number(day)
        response = self._server.run_raised(REPORT, keys, arguments, account_id, today, _UNRAISED)
        if response is None:  # The step was canceled, or this is a repetition.
            return ReportOutcome(ReportStatus.RECORDED, 0)
        status, used, _ = response
        return ReportOutcome(_STATUSES[status], used)

    def _cancel(self, step: Step, take_back: Callable[[Step], ReportOutcome]) -> None:
        if self._server.cancel(step) is not None:
            # As for a charge, the undoing has its own number, since its response may be lost, too.
            self._server.steps.postpone(partial(take_back, self._server.steps.begin()))

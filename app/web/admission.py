"""The state of a request, from its arrival until its last byte is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flask import g, has_request_context

from app.counters.values import ConsumeOutcome, Reservation, UncountedSearch, WindowState
from app.errors import ApiError
from app.runtime import Runtime
from app.services.access.callers import Caller
from app.services.usage.cpu_limits import Spender
from app.web.policy import OperationPolicy


@dataclass(slots=True)
class Admission:
    """One request. Made on arrival, completed by the checks before the view, and settled after the response.

    Attributes:
        policy: The operation's policy; without a route, or with one that is hidden from the caller, the policy of URLs
            that don't exist.
        ip_address: The client's IP address, as the audit log shows it.
        address: Keyed hash of the IP address, which identifies the client in the counter store.
        began: Time of arrival, in monotonic seconds.
        cpu_began: The thread's CPU seconds up to which the request's CPU time has been counted.
        caller: ``None`` until the caller is identified, and for unidentified callers.
        is_operator: Whether the request has the operator token.
        shares: Shares of the process's threads that the request occupies.
        json_body: The JSON body and ``None``, or ``None`` and the error, if it was read before the view.
        window: The limit that the rate limit headers describe; ``None`` for an unused one.
        outcome: The outcome of counting; ``None`` for unidentified callers and without the counter store.
        further_charges: Charges for all searches of the request but the first.
        uncounted: Searches to charge when the counter store is available again.
        counters_away: Whether the counter store is unavailable.
        search_failed: Whether the search failed regardless of the response status, so that it isn't charged.
        is_streamed: Whether the response is still being made after the request has ended for Flask.
    """

    runtime: Runtime
    method: str
    policy: OperationPolicy
    request_id: str
    ip_address: str
    address: str
    began: float
    cpu_began: float
    caller: Caller | None = None
    is_operator: bool = False
    is_preflight: bool = False
    shares: list[str | int] = field(default_factory=list)
    spenders: tuple[Spender, ...] = ()
    json_body: tuple[Any, ApiError | None] | None = None
    window: WindowState | None = None
    outcome: ConsumeOutcome | None = None
    further_charges: list[Reservation] = field(default_factory=list)
    uncounted: list[UncountedSearch] = field(default_factory=list)
    counters_away: bool = False
    search_failed: bool = False
    is_streamed: bool = False

    def leave_shares(self) -> None:
        """Give the request's shares of threads to the caller's other requests."""
        while self.shares:
            self.runtime.shares.leave(self.shares.pop())

    @property
    def known_caller(self) -> Caller:
        """The caller of an operation that requires identification."""
        assert self.caller is not None, "the operation is open to anyone"
        return self.caller


def current_admission() -> Admission:
    """Return the admission of the current request."""
    admission: Admission = g.admission
    return admission


def find_admission() -> Admission | None:
    """Return the admission of the current request; ``None`` for work outside a request, such as a job."""
    admission: Admission | None = g.get("admission") if has_request_context() else None
    return admission


def find_caller() -> Caller | None:
    """Return the caller of the current request; ``None`` for unidentified callers and without a request."""
    admission = find_admission()
    return None if admission is None else admission.caller

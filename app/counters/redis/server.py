"""Scripts run on one Redis server: each at most once, under a known incarnation, and settled later if it was lost."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import redis

from app.counters.metering import IDEMPOTENCY_SECONDS, USAGE_DAYS_KEPT, MinimumUsage, RaisedDays
from app.counters.redis import names, scripts
from app.counters.redis.client import Connections, KnownIncarnation, Step, StepLedger
from app.counters.values import CountersUnavailable

DAY_KEPT_MS = USAGE_DAYS_KEPT * 86_400_000
SLOT_KEPT_MS = 3_600_000
"""Milliseconds for which the server remembers the last step of a slot."""

_TRIES = 3


class Once(NamedTuple):
    """The name under which the server remembers a step, so that the step is executed only once."""

    account_id: int
    name: str
    now_ms: int


class Server:
    """One Redis server, as seen by this process.

    Attributes:
        raised_days: The days raised to their minimum usage.
        steps: Numbers of this process's steps, and the steps whose responses were lost.
        known: The last incarnation that this process has seen.
    """

    def __init__(self, url: str, raised_days: RaisedDays, *, timeout_seconds: float) -> None:
        self.raised_days = raised_days
        self.connections = Connections(
            url, timeout_seconds=timeout_seconds, greeting=("EVAL", scripts.GREET.text, 1, names.INCARNATION)
        )
        self._begin()
        _servers.add(self)

    def _begin(self) -> None:
        """Reset the state to the initial state of a process."""
        self.steps = StepLedger(names.SLOTS)
        self.known = KnownIncarnation()

    def do(self, *command: Any) -> Any:
        """Send a command and return its response."""
        response = self.connections.ask(*command)
        self.steps.settle()
        return response

    def run(
        self, script: scripts.Script, keys: Sequence[str], arguments: Sequence[Any], once: Once | None = None
    ) -> Any:
        """Run a script and return its response."""
        if once is not None:
            keys = [*keys, *names.reports(once.account_id)]
            arguments = [*arguments, once.name, once.now_ms, IDEMPOTENCY_SECONDS * 1000]
            assert script.once is not None, "the script has a variant that is executed once"
            script = script.once
        try:
            return self.do("EVALSHA", script.sha, len(keys), *keys, *arguments)
        # EVAL also stores the script, so that the next call finds it by its hash.
        except redis.exceptions.NoScriptError:
            return self.do("EVAL", script.text, len(keys), *keys, *arguments)

    def run_raised(
        self,
        script: scripts.Script,
        keys: Sequence[str],
        arguments: Sequence[Any],
        account_id: int | None,
        day: date,
        unraised: int,
        once: Once | None = None,
    ) -> Any:
        """Run a script. It counts only after the day is raised to its minimum usage under the current incarnation.

        Args:
            unraised: First item of the response of a script that did not count because the day is not raised.
        """
        if account_id is None:
            return self.run(script, keys, [*arguments, "", "", ""], once)
        under: str = self.raised_days.incarnation_of(account_id, day)
        minimum: MinimumUsage | None = None
        for _ in range(_TRIES):
            response = self.run(script, keys, [*arguments, under, *(minimum or ("", ""))], once)
            # The response is empty if the step was canceled before it arrived.
            if not response or response[0] != unraised:
                if minimum is not None:
                    self.raised_days.record(account_id, day, under)
                return response
            # The script does not count under this incarnation until the day is raised to its minimum usage.
            under = next(item for item in response if isinstance(item, bytes)).decode()
            minimum = self.raised_days.read(account_id, day)
        raise CountersUnavailable(f"The counter store at {self.connections.address} keeps changing its incarnation.")

    def check(self) -> None:
        """Write to the server, and compare its incarnation with the last one."""
        self._check(self.known.state, self.known.doubt)

    def _check(self, state: tuple[str, int], doubt: str) -> str:
        incarnation, changes = self.run(scripts.CHECK, [names.INCARNATION, names.CHECK], [doubt])
        return self.record_incarnation(state, doubt, incarnation.decode(), changes)

    def record_incarnation(self, state: tuple[str, int], doubt: str, incarnation: str, changes: int) -> str:
        """Return the incarnation that a response belongs to: a new one if the store went back in time.

        Args:
            state: State that was known before the step was sent.
            doubt: The doubt that was sent with the step.
        """
        if self.known.record(state, doubt, incarnation, changes):
            return incarnation
        # The incarnation that went back in time is now the doubt, so that the server begins another one.
        return self._check(("", 0), incarnation)

    def cancel(self, step: Step) -> bytes | None:
        """Cancel a step, so that it is not executed later. Returns its response if it was already executed."""
        response: bytes | None = self.run(scripts.CALL_OFF, [step.slot], [step.number, SLOT_KEPT_MS])
        return response

    def delete(self, pattern: str) -> int:
        """Delete all keys that match a pattern. Returns their number."""
        # SCAN in steps, because KEYS would block the server for all callers.
        deleted, cursor = 0, None
        while cursor != b"0":
            cursor, keys = self.do("SCAN", cursor or 0, "MATCH", pattern, "COUNT", 1000)
            if keys:
                deleted += self.do("DEL", *keys)
        return deleted


# Weak, so that the registry does not keep stores and their connections alive.
_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    # A slot belongs to one thread of one process, so the child must not use its parent's slots.
    for server in list(_servers):
        server._begin()


os.register_at_fork(after_in_child=_after_fork_in_child)

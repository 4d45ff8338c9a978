"""The client's side of the Redis store: connections to one server, unfinished steps, and the store's last incarnation.

Each command is sent once, and gets its response, fails, or is abandoned in time.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 - a name's look-up would import it, and a fork during an import hangs the child
import logging
import os
import secrets
import time
import weakref
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.retry import Retry

from app.counters.values import CountersUnavailable, ResponseLost

_TIMEOUTS_BEFORE_PAUSE = 3
_PAUSE_SECONDS = 1.0
_FAILURES = (redis.exceptions.RedisError, OSError)


class Connections:
    """A pool of connections, created at first use in a process.

    A server that refuses connections fails immediately, so every command is tried. A server that does not respond would
    block each caller until its timeout. After three consecutive timeouts, all commands therefore fail immediately,
    except one trial per second. Normal operation resumes with the first overdue response.

    Args:
        url: A URL in redis-py's format.
        timeout_seconds: Time budget of a command: a third for connecting, and a third for each response.
        greeting: First command on every connection.
    """

    def __init__(self, url: str, *, timeout_seconds: float, greeting: tuple[Any, ...]) -> None:
        self._url = url
        self._greeting = greeting
        self._third = timeout_seconds / 3
        self._timeouts = 0
        self._overdue: Any = None
        """A connection whose response did not arrive in time."""
        self._begin()
        options = self._pool.connection_kwargs
        self.address = str(options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}")
        _pools.add(self)

    def ask(self, *command: Any) -> Any:
        """Send a command once and return its response.

        Raises:
            CountersUnavailable: The command was not executed: not sent, or rejected.
            ResponseLost: It is unknown whether the command was executed.
            redis.exceptions.NoScriptError: The server does not have the script.
        """
        if self._timeouts >= _TIMEOUTS_BEFORE_PAUSE and not self._may_be_back():
            raise CountersUnavailable(f"The counter store at {self.address} is unavailable.")
        pool = self._pool
        try:
            connection = pool.get_connection()
        except _FAILURES as error:
            self._record_failure(error)
            raise CountersUnavailable(self._unusable(error)) from error
        # Distinguishes a lost response from a command that was not sent completely.
        waiting = False
        try:
            connection.send_command(*command)
            waiting = True
            # On a timeout, the connection must stay open: see ``_overdue``.
            response = connection.read_response(disconnect_on_error=False)
        except redis.exceptions.NoScriptError:
            # An error is a response, too, so the server does not hang.
            self._timeouts = 0
            raise
        except (redis.exceptions.ResponseError, redis.exceptions.BusyLoadingError) as error:
            self._timeouts = 0
            raise CountersUnavailable(self._unusable(error)) from error
        except _FAILURES as error:
            self._record_failure(error)
            # Keep one connection open: its late response shows that the server works again.
            if waiting and isinstance(error, redis.exceptions.TimeoutError) and self._overdue is None:
                self._overdue, connection = connection, None
            else:
                connection.disconnect()
            raise ResponseLost(self._unusable(error)) from error
        # An interrupted exchange leaves a response in the socket, which the next command would take for its own.
        except BaseException:
            connection.disconnect()
            raise
        finally:
            if connection is not None:
                pool.release(connection)
        self._timeouts = 0
        return response

    def close(self) -> None:
        """Close all connections. The next command opens one."""
        with self._lock:
            self._drop_overdue()
        self._pool.disconnect()

    def _begin(self) -> None:
        """Create a new pool. Nothing is sent before the first command."""
        self._pool: Any = ConnectionPool.from_url(
            self._url,
            socket_timeout=self._third,
            socket_connect_timeout=self._third,
            # By default, redis-py sends a command again if its response is lost, and so would count twice.
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            redis_connect_func=self._greet,
            driver_info=None,  # Naming the client costs two round trips, and imports that do not survive a fork.
        )
        self._lock = Lock()
        self._timeouts = 0
        self._paused_until = 0.0
        self._overdue = None

    def _greet(self, connection: Any) -> None:
        # Runs for every new connection, because after a failover it may lead to another server with older data.
        connection.on_connect()
        connection.send_command(*self._greeting)
        connection.read_response()

    def _may_be_back(self) -> bool:
        """Whether to send a command: an overdue response arrived, its connection closed, or the next try is due."""
        moment = time.monotonic()
        with self._lock:
            if self._overdue is not None and _has_input(self._overdue):
                self._drop_overdue()
                # A single further timeout pauses again.
                self._timeouts = _TIMEOUTS_BEFORE_PAUSE - 1
                return True
            if moment < self._paused_until:
                return False
            self._paused_until = moment + _PAUSE_SECONDS
            return True

    def _drop_overdue(self) -> None:
        overdue, self._overdue = self._overdue, None
        if overdue is not None:
            overdue.disconnect()
            self._pool.release(overdue)

    def _record_failure(self, error: Exception) -> None:
        if isinstance(error, redis.exceptions.TimeoutError | TimeoutError):
            self._timeouts += 1
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
        else:
            self._timeouts = 0

    def _unusable(self, error: Exception) -> str:
        return f"The counter store at {self.address} cannot be used: {error}"


def _has_input(connection: Any) -> bool:
    try:
        return bool(connection.can_read(0))
    # A broken connection also ends the wait, because the server may have restarted.
    except _FAILURES:
        return True


_pools: weakref.WeakSet[Connections] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    # Another thread of the parent may have held one of the pool's locks, which the child would never release.
    for connections in list(_pools):
        connections._begin()


os.register_at_fork(after_in_child=_after_fork_in_child)


log = logging.getLogger(__name__)

_SETTLED_AT_ONCE = 10


class Step(NamedTuple):
    """A numbered step in a slot. The number is ``""`` if the server need not remember the step."""

    slot: str
    number: int | str


NO_STEP = Step("", "")


class StepLedger:
    """Numbers for steps, so that the server executes a step at most once even if its response was lost.

    During a step, a thread has exclusive use of a slot. The server remembers the last number of each slot.

    Args:
        prefix: Beginning of the slots' keys.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._free: deque[Step] = deque()
        """The last steps of free slots."""
        self._open: deque[Callable[[], object]] = deque()
        self._settling = Lock()

    def begin(self) -> Step:
        """Return the next step of a free slot, which is reserved until :meth:`give_back`."""
        try:
            # Last in, first out: a busy process needs few slots, and the server forgets the others.
            slot, number = self._free.pop()
        except IndexError:
            return Step(f"{self._prefix}{secrets.token_hex(8)}", 1)
        return Step(slot, int(number) + 1)

    def give_back(self, step: Step) -> None:
        """Free the slot of a step whose response arrived."""
        if step != NO_STEP:
            self._free.append(step)

    def postpone(self, settle: Callable[[], object]) -> None:
        """Schedule ``settle``, which settles a lost step, for when the server responds again."""
        self._open.append(settle)

    def settle(self) -> None:
        """Settle some of the lost steps. The next call retries the failed ones."""
        # Another thread is already settling. Do not delay the step of this one.
        if not self._open or not self._settling.acquire(blocking=False):
            return
        try:
            # Limited, because the caller's own step has succeeded and waits for this.
            for _ in range(_SETTLED_AT_ONCE):
                if not self._open:
                    return
                settle = self._open.popleft()
                try:
                    settle()
                except CountersUnavailable as error:
                    self._open.appendleft(settle)
                    log.warning("the outcome of a counter step is still unknown: %s", error)
                    return
        finally:
            self._settling.release()


class KnownIncarnation:
    """The last incarnation of the store that this process has seen.

    A store that loses its data, or goes back in time, gets a new incarnation, so that cached credentials are loaded
    again.

    Attributes:
        state: Name of the incarnation, and a lower bound for its number of credential changes.
        doubt: Token that tells the next step to start a new incarnation; empty if the incarnation is not in doubt.
    """

    def __init__(self) -> None:
        self.state = ("", 0)
        self.doubt = ""

    def raise_doubt(self) -> None:
        """Start a new incarnation with the next step, because the store may have lost credential changes."""
        self.doubt = f"*{secrets.token_hex(4)}"

    def record(self, state: tuple[str, int], doubt: str, incarnation: str, changes: int) -> bool:
        """Record the state that a step reported, and clear the doubt that was sent with the step.

        Args:
            state: :attr:`state` before the step was sent.
            doubt: :attr:`doubt` before the step was sent.
            incarnation: Incarnation that the step reported.
            changes: Number of credential changes that the step reported.

        Returns:
            Whether the state was recorded; ``False`` if the store went back in time: the same incarnation, but fewer
            changes.
        """
        if incarnation == state[0] and changes < state[1]:
            return False
        if incarnation != self.state[0] or changes > self.state[1]:
            self.state = incarnation, changes
        if doubt and self.doubt == doubt:
            self.doubt = ""
        return True

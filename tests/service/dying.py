"""Run commands of an installation in processes that kill themselves (SIGKILL) at a given place in the program.

Its argument is JSON: a list of ``[place, which, arguments]``. A place is ``module:name`` or ``module:object.name``; the
process dies at the ``which``-th call of that place, counted from 1, or after its last call if ``which`` is 0. Prints
the exit status of each process, one per line; a process that was not killed has its own status.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import click
from flask import Flask

from app.application import create_app


def die_at(place: str, which: int) -> None:
    """Kill this process when a place in the program is reached."""
    module, _, path = place.partition(":")
    holder: Any = importlib.import_module(module)
    *owners, name = path.split(".")
    for owner in owners:
        holder = getattr(holder, owner)
    real: Callable[..., Any] = getattr(holder, name)
    calls = 0

    def called(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == which:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **named)
        if which == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, name, called)


def run(app: Flask, place: str, which: int, arguments: list[str]) -> None:
    """Run a command, and exit this process with its status."""
    die_at(place, which)
    result = app.test_cli_runner().invoke(args=arguments)
    print(result.output, file=sys.stderr)  # noqa: T201
    os._exit(result.exit_code)


if __name__ == "__main__":
    application = create_app()  # It opens no connections before its first use.
    application.cli.list_commands(click.Context(application.cli))  # Load them before forking.
    for task in json.loads(sys.argv[1]):
        pid = os.fork()
        if pid == 0:
            run(application, *task)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))  # noqa: T201

"""Run a command with a new PostgreSQL and two Redis servers: ``python -m tests.databases pytest -n 2 tests/api``.

Their URLs are in TEST_DATABASE_URL and TEST_LIMITS_URL (see tests/shared_servers.py); they stop with the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer


def main(command: list[str]) -> int:
    """Run ``command`` and return its exit status."""
    with ExitStack() as stack:
        postgres = PostgresServer()
        stack.callback(postgres.remove)
        postgres.start()
        urls = []
        for _ in range(2):
            redis = RedisServer(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redis-"))))
            stack.callback(redis.stop)
            redis.start()
            urls.append(redis.url)
        environment = {**os.environ, "TEST_DATABASE_URL": postgres.url, "TEST_LIMITS_URL": " ".join(urls)}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

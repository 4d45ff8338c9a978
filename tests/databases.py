"""Run a command with a PostgreSQL and a Redis of its own: ``python -m tests.databases pytest tests/api``.

The command finds them in TEST_DATABASE_URL and TEST_LIMITS_URL; both end with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.counters.conftest import RedisServer
from tests.postgres import PostgresServer


def main(command: list[str]) -> int:
    """Run ``command``; gives its exit status."""
    postgres = PostgresServer()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        redis = RedisServer(Path(folder))
        try:
            postgres.start()
            redis.start()
            environment = {**os.environ, "TEST_DATABASE_URL": postgres.url, "TEST_LIMITS_URL": redis.url}
            return subprocess.run(command, env=environment, check=False).returncode
        finally:
            redis.stop()
            postgres.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

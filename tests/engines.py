"""Run a command with two new Typesense servers: ``python -m tests.engines pytest -n 2 tests/api``.

Their URLs are in TEST_SEARCH_URL (see tests/shared_servers.py); they stop with the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.backends.live_servers import KEY, typesense_binary, typesense_cluster


def main(command: list[str]) -> int:
    """Run ``command`` and return its exit status."""
    if typesense_binary() is None:
        sys.exit("Install the packages of .ci/requirements.txt: they carry a Typesense server.")
    with ExitStack() as stack:
        urls = []
        for _ in range(2):
            folder = tempfile.TemporaryDirectory(prefix="typesense-", ignore_cleanup_errors=True)
            (node,) = stack.enter_context(typesense_cluster(Path(stack.enter_context(folder)), 1))
            urls.append(f"typesense://:{KEY}@{node.host}")
        environment = {**os.environ, "TEST_SEARCH_URL": " ".join(urls)}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

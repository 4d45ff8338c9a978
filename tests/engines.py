"""Run a command with a Typesense of its own: ``python -m tests.engines pytest tests/api``.

The command finds it in TEST_SEARCH_URL; it ends with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.backends.servers import KEY, typesense_binary, typesense_cluster


def main(command: list[str]) -> int:
    """Run ``command``; gives its exit status."""
    if typesense_binary() is None:
        sys.exit("Install the packages of .ci/requirements.txt: they carry a Typesense server.")
    with (
        tempfile.TemporaryDirectory(prefix="typesense-", ignore_cleanup_errors=True) as folder,
        typesense_cluster(Path(folder), 1) as (node,),
    ):
        environment = {**os.environ, "TEST_SEARCH_URL": f"typesense://:{KEY}@{node.host}"}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Print the packages that pip would update, from its report on standard input. Prints nothing if all are up to date."""

from __future__ import annotations

import json
import sys

for package in json.load(sys.stdin)["install"]:
    if "dir_info" not in package["download_info"]:  # This project itself.
        print(package["metadata"]["name"], package["metadata"]["version"])

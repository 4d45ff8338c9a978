"""The packages that pip would install, read from its report on standard input; nothing if all is as new as allowed."""

from __future__ import annotations

import json
import sys

for package in json.load(sys.stdin)["install"]:
    if "dir_info" not in package["download_info"]:  # This project itself.
        print(package["metadata"]["name"], package["metadata"]["version"])

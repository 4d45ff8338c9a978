"""The process of a model, with a model that needs no package; it is started by this file's path, like the real one.

It appends a line to ``starts`` for each start. Files in its folder control it: ``broken``: loading the model fails;
``idle``: seconds before it exits; ``held``: while the file exists, texts that contain "held" are not embedded, and
``holding`` is created when such a text arrives.
"""

from __future__ import annotations

import os
import runpy
import struct
import sys
import time
from pathlib import Path

server = runpy.run_path(str(Path(__file__).parents[3] / "app/services/embedding/local_server.py"))
address = Path(sys.argv[1])
folder = address.parent
DIMENSION = 384


def encode(text: str) -> bytes:
    if "held" in text:
        (folder / "holding").touch()
        while (folder / "held").exists():
            time.sleep(0.005)
    vector = [0.0] * DIMENSION
    vector[len(text) % len(vector)] = 1.0
    return struct.pack(f"<{len(vector)}f", *vector)


with (folder / "starts").open("a") as starts:
    starts.write(f"{os.getpid()}\n")


def load():
    if (folder / "broken").exists():
        raise server["ModelFileError"]("it is broken")
    return encode


idle = folder / "idle"
if idle.exists():
    server["serve"].__kwdefaults__["idle_seconds"] = float(idle.read_text())
server["main"](address, load)

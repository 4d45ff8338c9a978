"""The process of MiniLM with a model that needs no package; it is started by this file's path, like the real one.

It leaves a line in ``starts`` for each start, and does as files in its folder say: ``broken``: it cannot load the
model; ``idle``: seconds until it ends; ``held``: it makes no vectors of texts that contain "held" as long as the file
is there, and says in ``holding`` that it was asked to.
"""

from __future__ import annotations

import os
import runpy
import struct
import sys
import time
from pathlib import Path

server = runpy.run_path(str(Path(__file__).parents[3] / "app/services/embedding/minilm_server.py"))
folder = Path(sys.argv[1])


def encode(text: str) -> bytes:
    if "held" in text:
        (folder / "holding").touch()
        while (folder / "held").exists():
            time.sleep(0.005)
    vector = [0.0] * server["DIMENSION"]
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
server["main"](folder, load)

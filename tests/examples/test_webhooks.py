"""The documentation's code for verifying webhook signatures, checked with signatures of the service."""

from __future__ import annotations

import json
import re
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.services.webhook_delivery import secret_of, signed_headers
from tests.patience import PATIENCE_SECONDS

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text()
SECRET = secret_of("whk_00000000000000000000", "a secret of the installation")
BODY = '{"type": "run.failed", "name": "Öffnungszeiten"}'.encode()

Case = tuple[dict[str, str], bytes]


def code(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


def cases() -> list[tuple[str, Case, bool]]:
    """Return named requests to a receiver and whether they are genuine."""
    now = datetime.now(UTC)
    fresh, old = (dict(signed_headers(SECRET, "msg_1", now - timedelta(seconds=age), BODY)) for age in (1, 600))
    foreign = dict(signed_headers(secret_of("whk_1", "another"), "msg_1", now, BODY))
    rotated = {**fresh, "webhook-signature": f"{foreign['webhook-signature']} {fresh['webhook-signature']}"}
    return [
        ("genuine", (fresh, BODY), True),
        ("of two secrets", (rotated, BODY), True),
        ("another body", (fresh, BODY + b" "), False),
        ("another id", ({**fresh, "webhook-id": "msg_2"}, BODY), False),
        ("another secret", (foreign, BODY), False),
        ("old", (old, BODY), False),
        ("made younger", ({**old, "webhook-timestamp": str(int(time.time()))}, BODY), False),
    ]


def test_python_example_verifies_webhook_signatures() -> None:
    names: dict[str, Any] = {}
    exec(code("python"), names)

    assert {name: names["is_genuine"](SECRET, *case) for name, case, _ in cases()} == {
        name: is_genuine for name, _, is_genuine in cases()
    }


@pytest.mark.slow
def test_node_example_verifies_webhook_signatures(tmp_path: Path) -> None:
    told = [[name, headers, body.decode()] for name, (headers, body), _ in cases()]
    program = tmp_path / "verify.mjs"
    program.write_text(
        f"{code('js')}\nconst cases = {json.dumps(told)};\n"
        f"const one = ([name, headers, body]) => [name, isGenuine({SECRET!r}, headers, Buffer.from(body))];\n"
        "console.log(JSON.stringify(Object.fromEntries(cases.map(one))));\n"
    )
    done = subprocess.run(["node", str(program)], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: is_genuine for name, _, is_genuine in cases()}

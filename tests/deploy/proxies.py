"""nginx and Caddy with their files from deploy/, on free ports and with a test certificate."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
import trustme

from tests.deploy.files import text
from tests.deploy.test_tools import program
from tests.patience import PATIENCE_SECONDS
from tests.server import Server, free_port

START_SECONDS = 60.0


@dataclass
class Proxy:
    """A running proxy.

    Attributes:
        base_url: Its https URL.
        certificates: File of the authority that signed its certificate.
        process: The program.
        folder: Its working folder.
    """

    base_url: str
    certificates: Path
    process: subprocess.Popen[bytes]
    folder: Path

    def call(self, method: str, path: str, token: str = "", **kwargs: object) -> requests.Response:
        """Send one request, over a new connection."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers.update(kwargs.pop("headers", {}))
        return requests.request(
            method, self.base_url + path, headers=headers, verify=str(self.certificates), timeout=PATIENCE_SECONDS,
            allow_redirects=False, **kwargs,
        )  # fmt: skip


@contextmanager
def running_nginx(folder: Path, servers: Sequence[Server]) -> Iterator[Proxy]:
    """Run nginx in front of ``servers``."""
    http, https = free_port(), free_port()
    authority, pem, key = _certificate(folder)
    site = text("nginx/site-search.conf")
    for old, new in (
        ("listen 80;", f"listen 127.0.0.1:{http};"), ("listen 443 ssl", f"listen 127.0.0.1:{https} ssl"),
        ("search.example.com", "localhost"), ("/var/log/nginx/", f"{folder}/"),
        ("/etc/nginx/certificates/fullchain.pem", str(pem)), ("/etc/nginx/certificates/privkey.pem", str(key)),
    ):  # fmt: skip
        assert old in site
        site = site.replace(old, new)
    site = re.sub(r"^.*listen \[::\].*\n", "", site, flags=re.MULTILINE)
    (folder / "site-search.conf").write_text(site)
    write_upstream(folder, servers)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    # As root, its workers would run as another user without access to the tests' folders.
    user = "user root root;" if os.geteuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"{user} daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 1024; }}\n"
        f"http {{ {temporary} include {folder}/upstream.conf; include {folder}/site-search.conf; }}\n"
    )
    command = [program("nginx"), "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(configuration)]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=30, check=False)
    assert checked.returncode == 0, checked.stderr
    with _running(command, folder, https, authority) as proxy:
        yield proxy


def write_upstream(folder: Path, servers: Sequence[Server], down: Sequence[Server] = ()) -> None:
    """Write the list of servers for nginx."""
    source = text("nginx/upstream.conf")
    (one,) = re.findall(r"^ +server .*;\n", source, re.MULTILINE)
    lines = ""
    for each in servers:
        line = one.replace("127.0.0.1:8000", each.base_url.removeprefix("http://"))
        lines += line.replace(";", " down;") if each in down else line
    (folder / "upstream.conf").write_text(source.replace(one, lines))


@contextmanager
def running_caddy(folder: Path, server: Server) -> Iterator[Proxy]:
    """Run Caddy in front of ``server``."""
    https = free_port()
    authority, pem, key = _certificate(folder)
    site = text("Caddyfile")
    head = "{$SITE_ADDRESS:search.example.com} {\n"
    assert head in site
    site = site.replace("{\n\tservers", "{\n\tadmin off\n\tauto_https off\n\tservers", 1)
    site = site.replace(head, f"{head}\ttls {pem} {key}\n\tbind 127.0.0.1\n")
    # A start may take longer while the whole test suite runs on this machine.
    site = site.replace("lb_try_duration 20s", "lb_try_duration 120s")
    configuration = folder / "Caddyfile"
    configuration.write_text(site)
    environment = {
        **os.environ, "SITE_ADDRESS": f"https://localhost:{https}",
        "UPSTREAM": server.base_url.removeprefix("http://"), "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }  # fmt: skip
    command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(configuration)]
    with _running(command, folder, https, authority, environment) as proxy:
        yield proxy


def _certificate(folder: Path) -> tuple[Path, Path, Path]:
    folder.mkdir(exist_ok=True)
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    ca, pem, key = folder / "ca.pem", folder / "fullchain.pem", folder / "privkey.pem"
    authority.cert_pem.write_to_path(str(ca))
    certificate.private_key_pem.write_to_path(str(key))
    for number, blob in enumerate(certificate.cert_chain_pems):
        blob.write_to_path(str(pem), append=number > 0)
    return ca, pem, key


@contextmanager
def _running(
    command: Sequence[str], folder: Path, port: int, authority: Path, environment: dict[str, str] | None = None
) -> Iterator[Proxy]:
    with (folder / "proxy.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    proxy = Proxy(f"https://localhost:{port}", authority, process, folder)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                proxy.call("GET", "/healthz")
                break
            except requests.ConnectionError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((folder / "proxy.log").read_text()[-4000:]) from None
                time.sleep(0.05)
        yield proxy
    finally:
        process.terminate()
        process.wait(30)

"""gunicorn's settings: one worker per core, threads, and a graceful shutdown that writes data in memory to disk.

gunicorn executes this file by its path, from ``site-search serve`` or, in a checkout, ``gunicorn.conf.py``. The file is
not imported as a module, because that would load the application and its metrics before the metrics folder is set.
"""

from __future__ import annotations

import atexit
import gc
import os
import resource
import shutil
import sys
import tempfile
from functools import partial
from typing import Any

from gunicorn.glogging import Logger

# When gunicorn reloads its settings, the application is loaded, but the metrics folder is already set.
if "prometheus_client" in sys.modules and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    raise RuntimeError("gunicorn must read its settings before it loads the application: pass the path of this file.")
# The files are memory-mapped, and writing to such a file on a full disk kills the process. So they are kept in memory.
_MEMORY = "/dev/shm"  # noqa: S108 - mkdtemp makes the name unpredictable
_metrics_folder = tempfile.mkdtemp(prefix="metrics-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics_folder

_ANSWER_SECONDS = 20
"""Seconds that an answer of the language model has when the service stops, less than the graceful timeout."""
_OPEN_FILES = 8192
"""Limit of open files per process. A thousand connections and the index's files exceed many systems' default."""
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if 0 <= _soft < _OPEN_FILES:
    _new_limit = _OPEN_FILES if _hard == resource.RLIM_INFINITY else min(_OPEN_FILES, _hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_new_limit, _hard))

from app.config import find_misspelled  # noqa: E402 - the metrics folder must be set first.
from app.server import read_server_environment  # noqa: E402

_environment = read_server_environment()
bind = _environment.bind
workers = _environment.workers
worker_class = "app.server.worker.Worker"
threads = _environment.threads
limit_request_line = 8190
graceful_timeout = 30
timeout = 60
keepalive = 30
# Loaded once, before the fork: workers start fast, and share the memory of the modules.
preload_app = True
control_socket_disable = True
# Whether a proxy's scheme is trusted. Client addresses are decided by TRUSTED_PROXIES instead.
forwarded_allow_ips = "127.0.0.1,::1"
# Not every proxy removes a client's SCRIPT_NAME, which would change the path after the proxy has checked it.
forwarder_headers = ""
loglevel = (os.environ.get("LOG_LEVEL") or "info").lower()


class _JsonLogger(Logger):  # type: ignore[misc]  # gunicorn has no types.
    """A logger that formats gunicorn's log lines like the service's other lines."""

    def setup(self, cfg: Any) -> None:
        from app.logs import JsonFormatter

        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())


logger_class = _JsonLogger
_master = os.getpid()


def _remove_metrics() -> None:
    # Workers inherit the exit handler, but must not remove the folder of the others.
    if os.getpid() == _master:
        shutil.rmtree(_metrics_folder, ignore_errors=True)


atexit.register(_remove_metrics)


def pre_request(worker: Any, req: Any) -> None:
    """Send "Connection: close" if a request's body may be rejected unread.

    gunicorn skips at most 64 KiB of an unread body, and closes the connection after more. Without the header, the
    client's next request on the connection would be lost.
    """
    lengths = [value for name, value in req.headers if name == "CONTENT-LENGTH"]
    chunked = any(name == "TRANSFER-ENCODING" for name, _ in req.headers)
    if chunked or (lengths and int(lengths[0]) > 65_536):
        req.force_close()


def when_ready(server: Any) -> None:
    """Exclude loaded modules from garbage collection, because a full pass over them takes a tenth of a second.

    Modules live as long as the process, and memory that the collector does not touch stays shared among workers.
    """
    gc.collect()
    gc.freeze()
    _warn_of_open_folder(server)
    for sentence in find_misspelled():
        server.log.warning(sentence)


def _warn_of_open_folder(server: Any) -> None:
    from app.storage.files import is_open

    folder = server.app.wsgi().extensions["runtime"].settings.data_path
    if is_open(folder):
        # Only a warning, since it may be intended: for a backup group, or a volume that a platform assigns to a group.
        server.log.warning("Other users of this machine may list DATA_DIR; run `chmod go-rwx %s`.", folder)


def post_fork(server: Any, worker: Any) -> None:
    """Discard connections that were opened before the fork, and start the worker's jobs."""
    from app.bounded_process import bound_arenas
    from app.runtime import Runtime

    bound_arenas()
    runtime: Runtime = worker.app.wsgi().extensions["runtime"]
    # Without closing: a TLS or protocol message from the child would end the parent's connection.
    runtime.database.dispose(close=False)
    runtime.shares.share_out(worker.cfg.threads, lambda: worker.tpool.aside())
    worker.on_stop = partial(runtime.ask_slots.end_in, _ANSWER_SECONDS)
    worker.app.wsgi().extensions["jobs"].start()


def worker_exit(server: Any, worker: Any) -> None:
    """Write data that is only in memory, then release all resources."""
    application = worker.app.wsgi()
    application.extensions["jobs"].stop()
    application.extensions["runtime"].close()

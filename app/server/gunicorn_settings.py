"""gunicorn's settings as shipped: a worker per core, threads, a graceful end that flushes.

gunicorn executes this file by its path, which ``site-search serve`` names and in a checkout ``gunicorn.conf.py``. It is
not imported as a module: that would load the application, and its metrics, before the folder they share is named.
"""

from __future__ import annotations

import atexit
import gc
import os
import resource
import shutil
import sys
import tempfile
from typing import Any

from gunicorn.glogging import Logger

# When gunicorn is told to read them again, the application is there, and the folder has been named.
if "prometheus_client" in sys.modules and "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    raise RuntimeError("gunicorn's settings must be read before the application: name this file by its path.")
# Files that are mapped into memory: a disk that fills would kill whoever writes to them, and memory does not.
_MEMORY = "/dev/shm"  # noqa: S108 - the folder made there has a name that nobody can guess
_metrics_folder = tempfile.mkdtemp(prefix="metrics-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics_folder

_OPEN_FILES = 8192
"""A thousand connections a worker are more than many systems allow at first, with the index's files beside them."""
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if 0 <= _soft < _OPEN_FILES:
    _allowed = _OPEN_FILES if _hard == resource.RLIM_INFINITY else min(_OPEN_FILES, _hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_allowed, _hard))

from app.server.environment import read_server_environment  # noqa: E402 - the folder of metrics comes first.

_environment = read_server_environment()
bind = _environment.bind
workers = _environment.workers
worker_class = "app.server.worker.Worker"
threads = _environment.threads
limit_request_line = 8190
graceful_timeout = 30
timeout = 60
keepalive = 30
preload_app = True
control_socket_disable = True
forwarded_allow_ips = "127.0.0.1,::1"
# Not every proxy removes a client's SCRIPT_NAME, with which a path means another than the proxy's rules were about.
forwarder_headers = ""
loglevel = (os.environ.get("LOG_LEVEL") or "info").lower()


class _JsonLogger(Logger):  # type: ignore[misc]  # gunicorn has no types.
    """gunicorn's own lines in the form of all others."""

    def setup(self, cfg: Any) -> None:
        from app.logs import JsonFormatter

        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())


logger_class = _JsonLogger
_master = os.getpid()


def _remove_metrics() -> None:
    if os.getpid() == _master:
        shutil.rmtree(_metrics_folder, ignore_errors=True)


atexit.register(_remove_metrics)


def pre_request(worker: Any, req: Any) -> None:
    """Answer "Connection: close" where a body may be refused unread.

    gunicorn skips at most 64 KiB of what an application left unread and closes after more; the client must know,
    or its next request on the connection is lost.
    """
    lengths = [value for name, value in req.headers if name == "CONTENT-LENGTH"]
    chunked = any(name == "TRANSFER-ENCODING" for name, _ in req.headers)
    if chunked or (lengths and int(lengths[0]) > 65_536):
        req.force_close()


def when_ready(server: Any) -> None:
    """Take what is loaded out of the garbage collector's walks: a full one over it takes a tenth of a second.

    It lives as long as the process, and memory that is not walked stays shared by the workers.
    """
    gc.collect()
    gc.freeze()
    _warn_of_open_folder(server)


def _warn_of_open_folder(server: Any) -> None:
    from app.storage.files import is_open

    folder = server.app.wsgi().extensions["runtime"].settings.data_path
    if is_open(folder):
        # It may be meant: a group that makes backups, a volume that its platform gives to a group.
        server.log.warning("Other users of this machine may list DATA_DIR; run `chmod go-rwx %s`.", folder)


def post_fork(server: Any, worker: Any) -> None:
    """Nothing that was opened before the fork may be used after it."""
    from app.bounded_process import bound_arenas
    from app.runtime import Runtime

    bound_arenas()
    runtime: Runtime = worker.app.wsgi().extensions["runtime"]
    runtime.database.dispose(close=False)
    runtime.shares.share_out(worker.cfg.threads, lambda: worker.tpool.aside())
    worker.app.wsgi().extensions["jobs"].start()


def worker_exit(server: Any, worker: Any) -> None:
    """Write down what is only in memory, then give everything back."""
    application = worker.app.wsgi()
    application.extensions["jobs"].stop()
    runtime = application.extensions["runtime"]
    if runtime.embedder is not None:
        runtime.embedder.close()
    runtime.counters.close()
    runtime.database.dispose()
    # Last, since it may wait for a merge that gunicorn does not wait for.
    runtime.engines.close()

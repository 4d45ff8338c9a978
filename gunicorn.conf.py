"""gunicorn's settings as shipped: a worker per core, threads, a graceful end that flushes."""

from __future__ import annotations

import atexit
import gc
import os
import resource
import shutil
import tempfile

from gunicorn.glogging import Logger

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

bind = f"{os.environ.get('HOST') or '127.0.0.1'}:{os.environ.get('PORT') or '8000'}"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
worker_class = "app.web.worker.Worker"
threads = int(os.environ.get("WEB_THREADS") or 8)
limit_request_line = 8190
graceful_timeout = 30
timeout = 60
keepalive = 30
preload_app = True
control_socket_disable = True
forwarded_allow_ips = "127.0.0.1,::1"
loglevel = (os.environ.get("LOG_LEVEL") or "info").lower()


class _JsonLogger(Logger):
    """gunicorn's own lines in the form of all others."""

    def setup(self, cfg):
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


def pre_request(worker, req):
    """Answer "Connection: close" where a body may be refused unread.

    gunicorn skips at most 64 KiB of what an application left unread and closes after more; the client must know,
    or its next request on the connection is lost.
    """
    lengths = [value for name, value in req.headers if name == "CONTENT-LENGTH"]
    chunked = any(name == "TRANSFER-ENCODING" for name, _ in req.headers)
    if chunked or (lengths and int(lengths[0]) > 65_536):
        req.force_close()


def when_ready(server):
    """Take what is loaded out of the garbage collector's walks: a full one over it takes a tenth of a second.

    It lives as long as the process, and memory that is not walked stays shared by the workers.
    """
    gc.collect()
    gc.freeze()


def post_fork(server, worker):
    """Nothing that was opened before the fork may be used after it."""
    from app.memory import bound_arenas
    from app.runtime import Runtime

    bound_arenas()
    part: Runtime = worker.app.wsgi().extensions["runtime"]
    part.database.dispose(close=False)
    part.shares.share_out(worker.cfg.threads)
    worker.app.wsgi().extensions["jobs"].start()


def worker_exit(server, worker):
    """Write down what is only in memory, then give everything back."""
    application = worker.app.wsgi()
    application.extensions["jobs"].stop()
    part = application.extensions["runtime"]
    part.counters.close()
    part.database.dispose()
    # Last, since it may wait for a merge that gunicorn does not wait for.
    part.engines.close()

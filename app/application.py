"""The web application: settings, parts, routes, and error handlers, assembled by ``create_app``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import orjson
from flask import Flask, Request, Response
from flask.json.provider import JSONProvider
from werkzeug.routing import MapAdapter

from app import api, logs, metrics, pages
from app.apidoc import openapi
from app.commands import cli
from app.compat import algolia as algolia_views
from app.compat import custom_search as custom_search_views
from app.compat.agents import views as agents_views
from app.config import Settings, load_settings
from app.gateway import views as gateway_views
from app.jobs import Jobs
from app.runtime import attach, create_runtime
from app.services.audit_log.recording import watch
from app.web import entrance, error_handlers
from app.web.callers import find_actor
from app.web.parsing import PathInteger
from app.web.policy import require_policies


class Application(Flask):
    """Flask without coroutines, and with one entrance instead of hooks, whose lists took 120 calls per request.

    Functions added with ``before_request``, ``after_request``, or ``teardown_request`` are not called.
    """

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Match routes by path alone, since the service has the same routes at every host."""
        if request is None:
            return None
        return self.url_map.bind("", request.root_path, None, request.scheme, request.method, request.path)

    def preprocess_request(self) -> Response | None:
        """Check a request before its view."""
        self.extensions["jobs"].start()
        return entrance.enter(self)

    def process_response(self, response: Response) -> Response:
        """Complete a response."""
        return entrance.leave(response)

    def do_teardown_request(self, exc: BaseException | None = None) -> None:
        """Settle a request after its response."""
        entrance.end()

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function unchanged, since no view is a coroutine and Flask's check would run for each request."""
        return func


def create_app(
    settings: Settings | None = None, *, background: bool = True, application: type[Application] = Application
) -> Flask:
    """Build the application, which opens no file or connection before the first request.

    Args:
        settings: The settings; by default, read from the environment.
        background: Whether background threads may be started at first use.
        application: Class to instantiate.

    Raises:
        ConfigurationError: A setting is invalid.
        MissingPolicy: A route has no policy.
    """
    # Search engines create their own files. Only the owner may read customers' data.
    os.umask(0o077)
    settings = load_settings() if settings is None else settings
    logs.configure(settings.log_level, settings.secrets)
    app = application(__name__, static_folder="static", static_url_path="/static")
    app.json = _OrjsonProvider(app)
    app.url_map.merge_slashes = False
    app.url_map.converters["int"] = PathInteger
    app.config.update(
        MAX_BODY_BYTES=settings.max_body_bytes,
        MAX_CONTENT_LENGTH=max(settings.max_body_bytes, settings.max_bulk_body_bytes),
        MAX_FORM_MEMORY_SIZE=settings.max_body_bytes,
        BODY_LIMITS=dict.fromkeys(
            (
                "documents.index_documents",
                "documents.change_documents",
                "documents.delete_documents",
                "imports.import_file",
            ),
            settings.max_bulk_body_bytes,
        ),
    )
    runtime = create_runtime(settings, background=background)
    attach(app, runtime)
    watch(runtime.database, find_actor)
    error_handlers.register(app)
    metrics.register(app, runtime)
    runtime.limiter.init_app(app)
    smorest = openapi.create_api(app)
    api.register(smorest)
    smorest.register_blueprint(gateway_views.blp)
    smorest.register_blueprint(custom_search_views.blp)
    smorest.register_blueprint(algolia_views.blp)
    agents_views.register(app)
    pages.register(app, smorest)
    app.cli = cli.LazyGroup(lazy_subcommands=cli.COMMANDS)
    require_policies(app)
    app.extensions["jobs"] = Jobs(runtime, background=background)
    return app


class _OrjsonProvider(JSONProvider):
    """Makes Flask use orjson for JSON."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        return orjson.dumps(obj, option=orjson.OPT_NON_STR_KEYS).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        return orjson.loads(s)

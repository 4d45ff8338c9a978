# flask-smorest has no types of its own: what this service uses of it.
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from flask import Blueprint as FlaskBlueprint
from flask import Flask
from marshmallow import Schema
from webargs.flaskparser import FlaskParser

_View = TypeVar("_View", bound=Callable[..., Any])

class Blueprint(FlaskBlueprint):
    ARGUMENTS_PARSER: FlaskParser
    DEFAULT_LOCATION_CONTENT_TYPE_MAPPING: dict[str, str]
    def __init__(self, name: str, import_name: str, *, description: str = ...) -> None: ...
    def route(
        self,
        rule: str,
        *,
        parameters: Sequence[Mapping[str, Any]] | None = ...,
        tags: Sequence[str] | None = ...,
        **options: Any,
    ) -> Callable[[_View], _View]: ...
    def arguments(
        self, schema: Schema | type[Schema], *, location: str = ..., **kwargs: Any
    ) -> Callable[[_View], _View]: ...
    def response(
        self,
        status_code: int,
        schema: Schema | type[Schema] | None = ...,
        *,
        example: Any = ...,
        headers: Mapping[str, Any] | None = ...,
    ) -> Callable[[_View], _View]: ...
    def alt_response(
        self, status_code: int, *, schema: Any = ..., content_type: str | None = ..., example: Any = ...
    ) -> Callable[[_View], _View]: ...
    @staticmethod
    def doc(**kwargs: Any) -> Callable[[_View], _View]: ...
    def register_views_in_doc(self, api: Any, *args: Any, **kwargs: Any) -> None: ...

class Api:
    ERROR_SCHEMA: type[Schema]
    spec: Any
    ma_plugin: Any
    def __init__(self, app: Flask | None = ...) -> None: ...
    def init_app(self, app: Flask) -> None: ...
    def register_blueprint(self, blp: Blueprint) -> None: ...
    def _register_error_handlers(self) -> None: ...

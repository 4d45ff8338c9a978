"""Views of forms that only change something. Each is declared in the module of its noun."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Response
from marshmallow import Schema

from app.errors import ApiError
from app.pages.forms import read_form, refill_on_error
from app.pages.negotiation import see_other
from app.runtime import runtime
from app.web.callers import current_caller


@dataclass(frozen=True, slots=True)
class Action:
    """A view that calls an operation with the URL's parameters and the form's fields, and redirects.

    Attributes:
        page: Path of the next page, with parameters of the URL in braces.
        notice: Name of the notice on the next page.
        step: Function of a service, if the operation is ``change`` or ``write``.
        schema: Fields of the form; ``None`` for a button.
        refill: Shows the form again after an error.
        actor: Returns the second argument of the operation.
    """

    operation: Callable[..., Any]
    page: str
    notice: str
    step: Callable[..., Any] | None = None
    schema: type[Schema] | None = None
    refill: Callable[[ApiError], str] | None = None
    actor: Callable[[], Any] = current_caller

    def __call__(self, **path: Any) -> Response:
        if self.refill is not None:
            refill_on_error(self.refill)
        fields = {} if self.schema is None else read_form(self.schema())
        steps = () if self.step is None else (self.step,)
        self.operation(runtime(), self.actor(), *steps, **path, **fields)
        return see_other(self.page.format(**path), notice=self.notice)

"""Metadata of an embedded index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from backends.embedded.index.schema import FIRST_DYNAMIC_COLUMNS, OLDEST_READABLE_VERSION, SCHEMA_VERSION
from backends.errors import BackendUnavailable


@dataclass(frozen=True, slots=True)
class State:
    """Metadata of an index.

    Attributes:
        generation: Name of the folder with the documents; a rebuild creates a new one.
        capacity: Number of dynamic columns in its schema.
        dynamic_columns: Assigned column numbers, by field.
        version: Schema version with which it was created.
    """

    generation: str = "g1"
    capacity: int = FIRST_DYNAMIC_COLUMNS
    dynamic_columns: Mapping[str, int] = field(default_factory=dict)
    version: int = field(default_factory=lambda: SCHEMA_VERSION)

    def to_json(self) -> bytes:
        return orjson.dumps({
            "version": self.version, "generation": self.generation, "capacity": self.capacity,
            "slots": dict(self.dynamic_columns),
        })  # fmt: skip

    @classmethod
    def from_json(cls, text: bytes) -> State:
        """Parse the output of :meth:`to_json`.

        Raises:
            ValueError: The text is not a state, or its schema version is no longer supported.
            BackendUnavailable: A newer release created the index.
        """
        try:
            values = orjson.loads(text)
            version = int(values["version"])
            if version > SCHEMA_VERSION:
                # Not "missing": a process of the previous release must not rebuild what its successor has built.
                raise BackendUnavailable("A newer release of the service created the index.")
            if version < OLDEST_READABLE_VERSION:
                raise ValueError("unsupported schema version")
            return cls(str(values["generation"]), int(values["capacity"]), dict(values["slots"]), version)
        except (KeyError, TypeError) as error:
            raise ValueError("not an index state") from error

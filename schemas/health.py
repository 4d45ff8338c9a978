"""Health of the service."""

from __future__ import annotations

from marshmallow import Schema, fields


class HealthSchema(Schema):
    """The process responds."""

    status = fields.String(required=True)


class ReadinessChecksSchema(Schema):
    """The state of each part."""

    database = fields.String(required=True)
    counters = fields.String(required=True)
    search = fields.String(required=True)


class ReadinessSchema(Schema):
    """All parts work."""

    status = fields.String(required=True)
    checks = fields.Nested(ReadinessChecksSchema, required=True)

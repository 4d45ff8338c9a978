"""Health of the service."""

from __future__ import annotations

from marshmallow import Schema, fields


class HealthSchema(Schema):
    """The process answers."""

    status = fields.String(required=True)


class ReadinessChecksSchema(Schema):
    """The parts, one by one."""

    database = fields.String(required=True)
    counters = fields.String(required=True)
    search = fields.String(required=True)


class ReadinessSchema(Schema):
    """All parts can work."""

    status = fields.String(required=True)
    checks = fields.Nested(ReadinessChecksSchema, required=True)

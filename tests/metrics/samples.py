"""Reading /metrics as Prometheus does."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Flask
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.callers import ApiClient

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Name and labels of each sample to its value."""


def scrape(app: Flask) -> Samples:
    """Return all samples of an application, requested from the same machine."""
    response = ApiClient(app).get("/metrics", environ_overrides={"REMOTE_ADDR": "127.0.0.1"})
    assert response.status_code == 200, response.get_data(as_text=True)
    return samples_of(response.get_data(as_text=True))


def samples_of(text: str) -> Samples:
    """Return all samples of a response, each of which occurs once."""
    families: list[Metric] = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "a metric is exported twice"
    listed = [(key_of(each.name, each.labels), each.value) for family in families for each in family.samples]
    assert len(listed) == len(dict(listed)), "a sample is exported twice"
    return dict(listed)


def key_of(name: str, labels: Mapping[str, str]) -> tuple[str, frozenset[tuple[str, str]]]:
    """Return the key of a sample."""
    return name, frozenset(labels.items())


def value(samples: Samples, name: str, **labels: str) -> float:
    """Return the value of one sample, 0 if it does not exist yet."""
    return samples.get(key_of(name, labels), 0.0)


def has(samples: Samples, name: str) -> bool:
    """Whether there is any sample of this name."""
    return any(found == name for found, _ in samples)

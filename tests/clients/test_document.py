"""The API document is valid OpenAPI 3.1 and works with tools for such documents."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.clients.conftest import HERE, Customer, run

CONVERTING = {"folderStrategy": "Tags", "parametersResolution": "Example", "enableOptionalParameters": False}
"""Options for the Postman converter to use the examples."""


def test_document_is_valid_openapi(document: Path, needs_package: Callable[[str], None]) -> None:
    needs_package("openapi_spec_validator")
    from openapi_spec_validator import OpenAPIV31SpecValidator

    spec = json.loads(document.read_text())

    assert [str(error) for error in OpenAPIV31SpecValidator(spec).iter_errors()] == []


def test_redocly_lint_reports_no_problems(document: Path, npm_folder: Path) -> None:
    shutil.copy(HERE / "redocly.yaml", npm_folder)
    redocly = npm_folder / "node_modules" / ".bin" / "redocly"

    found = run(npm_folder, str(redocly), "lint", "--format", "json", str(document), REDOCLY_TELEMETRY="off")

    assert json.loads(found)["problems"] == []


def test_postman_collection_has_all_examples_and_runs_document_requests(
    document: Path, npm_folder: Path, make_customer: Callable[[str], Customer]
) -> None:
    customer = make_customer("postman@example.com")
    bin_folder = npm_folder / "node_modules" / ".bin"
    collection, options, report = (npm_folder / name for name in ("collection.json", "options.json", "report.json"))
    options.write_text(json.dumps(CONVERTING))
    run(
        npm_folder,
        str(bin_folder / "openapi2postmanv2"),
        "-s",
        str(document),
        "-o",
        str(collection),
        "-c",
        str(options),
    )

    made = list(_requests(json.loads(collection.read_text())["item"]))
    paths = json.loads(document.read_text())["paths"].values()
    assert len(made) == sum(verb != "parameters" for item in paths for verb in item)
    for item in made:
        assert all(response["body"] for response in item["response"]), item["name"]

    run(
        npm_folder, str(bin_folder / "newman"), "run", str(collection), "--folder", "documents", "--env-var",
        f"baseUrl={customer.server.base_url}", "--env-var", f"bearerToken={customer.tokens['private']}",
        "--reporters", "json", "--reporter-json-export", str(report),
    )  # fmt: skip
    answers = [each["response"]["code"] for each in json.loads(report.read_text())["run"]["executions"]]
    assert set(answers) == {200}


def _requests(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        if "item" in item:
            yield from _requests(item["item"])
        else:
            yield item

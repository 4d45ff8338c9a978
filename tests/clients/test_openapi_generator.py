"""Clients that openapi-generator makes of the API document, in five languages, do a customer's work.

They create a site and a key, index, search with a filter and facets, read analytics and errors, and delete. The
commands for customers are in docs/clients.md.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients.conftest import HERE, Customer, missing, run
from tests.server import Server

Tool = Callable[[str], str]

JOURNEYS = HERE / "journeys"
GUZZLE = Path("/usr/share/php/GuzzleHttp/autoload.php")
"""Debian's package php-guzzlehttp-guzzle."""

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "python": {"additionalProperties": {"packageName": "site_search"}},
    "typescript-fetch": {"additionalProperties": {"importFileExtension": ".js"}},
    "php": {"additionalProperties": {"invokerPackage": "SiteSearch"}},
    "go": {
        "additionalProperties": {"packageName": "sitesearch"},
        "gitHost": "example.com", "gitUserId": "museum", "gitRepoId": "sitesearch",
    },
    "java": {
        "additionalProperties": {
            "library": "native", "openApiNullable": False, "invokerPackage": "com.example.sitesearch",
            "apiPackage": "com.example.sitesearch.api", "modelPackage": "com.example.sitesearch.model",
        },
        "schemaMappings": {"Names": "Object", "EngineFilterPart": "Object", "EngineSearchFilter": "Object"},
    },
}  # fmt: skip
"""Generator to its configuration."""

ANNOTATION = """package javax.annotation;
public @interface Generated { String[] value(); String date() default ""; String comments() default ""; }
"""
"""Stands in for the package jakarta.annotation-api, of which generated code has this alone."""


@pytest.fixture(scope="module")
def clients(server: Server, tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Path:
    """The folder of all clients, each in a folder with the name of its generator."""
    folder = tmp_path_factory.mktemp("clients")
    document = folder / "openapi.json"
    document.write_bytes(requests.get(f"{server.base_url}/openapi.json", timeout=30).content)
    code_alone = dict.fromkeys(("apiTests", "modelTests", "apiDocs", "modelDocs"), "false")
    for name, configuration in CONFIGURATIONS.items():
        common = {"generatorName": name, "inputSpec": str(document), "outputDir": str(folder / name)}
        text = json.dumps({**common, "globalProperties": code_alone, **configuration})
        (folder / f"{name}.json").write_text(text)
    tool("java")
    run(folder, tool("openapi-generator-cli"), "batch", *(str(folder / f"{name}.json") for name in CONFIGURATIONS))
    return folder


@pytest.fixture(scope="module")
def arguments(make_customer: Callable[[str], Customer]) -> tuple[str, str]:
    """Where the service is, and a private key."""
    customer = make_customer("generator@example.com")
    return customer.server.base_url, customer.tokens["private"]


def test_names_are_those_of_the_document(clients: Path) -> None:
    known = {name.lower() for name in json.loads((clients / "openapi.json").read_text())["components"]["schemas"]}
    models = {path.stem.replace("_", "") for path in (clients / "python" / "site_search" / "models").glob("[a-z]*.py")}

    assert models <= known, "a schema inside another one has no name of its own: see _SHARED_SCHEMAS in openapi.py"


def test_python(clients: Path, tool: Tool, needs_package: Callable[[str], None], arguments: tuple[str, str]) -> None:
    for package in ("dateutil", "pydantic"):
        needs_package(package)

    said = run(clients, tool("python"), str(JOURNEYS / "journey.py"), *arguments, PYTHONPATH=str(clients / "python"))

    assert said == "done\n"


def test_typescript(clients: Path, npm_folder: Path, tool: Tool, arguments: tuple[str, str]) -> None:
    folder = npm_folder / "openapi-generator"
    shutil.copytree(clients / "typescript-fetch", folder / "client")
    shutil.copy(JOURNEYS / "journey.ts", folder)
    compiler = npm_folder / "node_modules" / ".bin" / "tsc"
    run(folder, str(compiler), "--strict", "--target", "es2022", "--module", "nodenext", "journey.ts")

    assert run(folder, tool("node"), "journey.js", *arguments) == "done\n"


def test_php(clients: Path, tool: Tool, arguments: tuple[str, str]) -> None:
    if not GUZZLE.exists():
        missing("Guzzle")
    folder = clients / "php"
    shutil.copy(JOURNEYS / "journey.php", folder)

    assert run(folder, tool("php"), "journey.php", *arguments) == "done\n"


def test_go(clients: Path, tool: Tool, arguments: tuple[str, str]) -> None:
    folder = clients / "go"
    (folder / "cmd").mkdir()
    shutil.copy(JOURNEYS / "journey.go", folder / "cmd")
    run(folder, tool("go"), "build", "-o", "journey", "./cmd")

    assert run(folder, str(folder / "journey"), *arguments) == "done\n"


def test_java(clients: Path, tool: Tool, needs_package: Callable[[str], None], arguments: tuple[str, str]) -> None:
    needs_package("openapi_generator_cli")
    found = find_spec("openapi_generator_cli")
    assert found is not None
    assert found.origin is not None
    libraries = Path(found.origin).with_name("openapi-generator.jar")  # It has the Jackson that its clients need.
    folder = clients / "java"
    sources = folder / "src" / "main" / "java"
    (sources / "javax" / "annotation").mkdir(parents=True)
    (sources / "javax" / "annotation" / "Generated.java").write_text(ANNOTATION)
    shutil.copy(JOURNEYS / "Journey.java", sources)
    classes = folder / "classes"
    run(
        folder, tool("javac"), "-nowarn", "-d", str(classes), "-cp", str(libraries), *map(str, sources.rglob("*.java"))
    )  # fmt: skip

    assert run(folder, tool("java"), "-cp", f"{classes}:{libraries}", "Journey", *arguments) == "done\n"

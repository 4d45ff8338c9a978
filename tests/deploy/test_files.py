"""The files for operators agree with the program: settings, commands, ports, limits, times, and versions."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from flask import Flask

from app.config import SERVER_SETTINGS, SETTINGS, Settings
from app.errors import STATUS, ErrorCode
from tests.deploy.files import (
    BROWSER_MANIFEST,
    COMPOSE_FILES,
    DEPLOY,
    OWN_COMPOSE_FILES,
    PROJECT,
    UNITS,
    assignments,
    compose,
    kustomization,
    objects,
    pods,
    seconds,
    text,
)

KNOWN = {*SETTINGS, *SERVER_SETTINGS}
CONTAINERFILE = text("Containerfile")
NGINX = text("nginx/site-search.conf")
CADDY = text("Caddyfile")
PORT = int(SERVER_SETTINGS["PORT"][0])


def gunicorn_setting(name: str) -> Any:
    """Return a number from the shipped gunicorn settings."""
    for node in ast.parse((PROJECT / "app" / "server" / "gunicorn_settings.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def directive(source: str, name: str) -> list[str]:
    """Return all values of a directive of nginx or Caddy."""
    return re.findall(rf"^\s*{name} ([^;{{\n]+?);?$", source, re.MULTILINE)


def own_services(file: Path) -> dict[str, dict[str, Any]]:
    """Return the services of a compose file that run this program."""
    return {name: each for name, each in compose(file)["services"].items() if each["image"] == "site-search"}


# Settings.


@pytest.mark.parametrize("file", OWN_COMPOSE_FILES, ids=lambda file: file.name)
def test_compose_file_sets_only_known_settings(file: Path) -> None:
    for name, service in own_services(file).items():
        assert set(service["environment"]) <= KNOWN, name
        assert {"PUBLIC_URL", "TRUSTED_PROXIES"} <= set(service["environment"]), name


def test_image_sets_only_known_settings() -> None:
    final = CONTAINERFILE.rpartition("\nFROM ")[2]
    names = set(re.findall(r"^(?:ENV|   ) ([A-Z_]+)=", final, re.MULTILINE))
    assert {"DATA_DIR", "HOST", "PORT"} <= names
    assert {name for name in names if not name.startswith("PYTHON")} - {"PATH"} <= KNOWN


def test_systemd_environment_example_contains_only_known_settings() -> None:
    assert set(assignments(text("systemd/environment.example"))) <= KNOWN


def test_kubernetes_example_contains_only_known_settings() -> None:
    (settings,) = kustomization()["configMapGenerator"]
    named = {line.partition("=")[0] for line in settings["literals"]}
    (secret,) = [yaml.safe_load(text("kubernetes/secret.example.yaml"))]
    assert {"SECRET_KEY", "DATABASE_URL"} <= set(secret["stringData"])
    assert {*named, *secret["stringData"]} <= KNOWN
    assert settings["name"] == secret["metadata"]["name"] == "settings"


@pytest.mark.parametrize("file", OWN_COMPOSE_FILES, ids=lambda file: file.name)
def test_variables_of_a_compose_file_are_in_the_env_example(file: Path) -> None:
    asked = set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", file.read_text()))
    assert asked
    assert asked <= set(assignments(text(".env.example")))


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: str(file.relative_to(DEPLOY)))
def test_compose_files_contain_no_secrets(file: Path) -> None:
    for name, service in compose(file)["services"].items():
        for variable, value in (service.get("environment") or {}).items():
            if re.search("KEY|PASSWORD|SECRET|TOKEN|AUTH", variable):
                assert re.fullmatch(r"\$\{[A-Z_]+(:\?[^}]+)?\}", value), (name, variable)


def test_unset_secret_stops_compose() -> None:
    source = text("compose.yaml")
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD", "REDIS_PASSWORD", "SEARCH_KEY", "SEARCH_URL", "PUBLIC_URL"):
        assert f"${{{name}:?" in source


# Commands.


def commands() -> list[tuple[str, list[str]]]:
    """Return every command of the program in the files: file and words."""
    found = []
    for file in OWN_COMPOSE_FILES:
        for each in own_services(file).values():
            words = each.get("command", ["site-search", "serve"])
            if words[0] == "sh":
                words = shlex.split(re.findall(r"site-search [^;]+", words[-1])[0])
            found.append((file.name, words))
    for pod in pods():
        found += [("kubernetes", each["command"]) for each in pod["containers"] if "command" in each]
    for unit in UNITS:
        for line in re.findall(r"^Exec\w+=(.*)$", unit.read_text(), re.MULTILINE):
            match = re.search(r"/bin/(site-search .*?)'?$", line)
            if match:
                found.append((unit.name, shlex.split(match[1])))
    return found


def test_commands_in_the_files_exist_in_the_program(app: Flask) -> None:
    assert {file for file, _ in commands()} >= {"compose.yaml", "compose.single.yaml", "kubernetes", UNITS[0].name}
    for file, words in commands():
        assert words[0] == "site-search", file
        context = click.Context(app.cli)
        command: click.Command = app.cli
        arguments = words[1:]
        while isinstance(command, click.Group):
            name = arguments.pop(0)
            found = command.get_command(context, name)
            assert found is not None, (file, name)
            command = found
        command.make_context(words[-1], list(arguments))


def test_tables_are_created_before_the_service_starts() -> None:
    for file in OWN_COMPOSE_FILES:
        services = own_services(file)
        assert services["migrate"]["command"] == ["site-search", "database", "upgrade"]
        assert services["migrate"]["restart"] == "no"
        for name in services.keys() - {"migrate"}:
            condition = services[name]["depends_on"]["migrate"]["condition"]
            assert condition == "service_completed_successfully", name
    assert "ExecStart=/opt/site-search/.venv/bin/site-search serve\n" in text("systemd/site-search.service")


# Ports and host names.


def test_port_is_the_same_in_every_file() -> None:
    assert f"EXPOSE {PORT}\n" in CONTAINERFILE
    assert f"PORT={PORT} " in CONTAINERFILE
    assert f"server 127.0.0.1:{PORT} " in text("nginx/upstream.conf")
    assert f"server service:{PORT};" in text("nginx/upstream-compose.conf")
    assert f"{{$UPSTREAM:127.0.0.1:{PORT}}}" in CADDY
    assert compose(DEPLOY / "compose.single.yaml")["services"]["proxy"]["environment"]["UPSTREAM"] == f"service:{PORT}"
    assert f"ListenStream=127.0.0.1:{PORT}\n" in text("systemd/site-search.socket")
    ports = [port["containerPort"] for pod in pods() for each in pod["containers"] for port in each.get("ports", ())]
    assert ports == [PORT]


def test_server_host_names_are_services_of_the_compose_file() -> None:
    services = compose(DEPLOY / "compose.yaml")["services"]
    environment = services["service"]["environment"]
    urls = [environment["DATABASE_URL"], environment["LIMITS_URL"], *re.findall(r"SEARCH_URL=.*", text(".env.example"))]
    hosts = [re.search(r"@([a-z]+)[:/]", url)[1] for url in urls]
    assert hosts == ["postgresql", "redis", "typesense", "meilisearch"]
    assert set(hosts) <= services.keys()
    assert all("ports" not in services[host] for host in hosts)


# Limits and times.


def test_proxy_body_limits_match_the_service() -> None:
    mebibyte = 1024 * 1024
    defaults = Settings()
    limits = [f"{defaults.max_body_bytes // mebibyte}", f"{defaults.max_bulk_body_bytes // mebibyte}"]
    assert directive(NGINX, "client_max_body_size") == [f"{limit}m" for limit in limits]
    assert sorted(directive(CADDY, "max_size")) == sorted(f"{limit}MiB" for limit in limits)
    assert directive(CADDY, "request_buffers") == [f"{limits[1]}MiB"]
    (ingress,) = [each for each in objects() if each["kind"] == "Ingress"]
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"] == f"{limits[1]}m"


def large_bodies() -> list[str]:
    """Return the proxies' route patterns with the limit of bulk requests."""
    return [*re.findall(r"location ~ (\S+) \{", NGINX), *re.findall(r"path_regexp (\S+)$", CADDY, re.MULTILINE)]


def test_proxy_patterns_match_exactly_the_routes_with_large_bodies(app: Flask) -> None:
    large, small = set(), set()
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<[^>]*>", "17", rule.rule)
        (large if rule.endpoint in app.config["BODY_LIMITS"] else small).add(path)
    assert len(large) == 4
    assert len(large_bodies()) == 3
    for pattern in large_bodies():
        assert {path for path in large | small if re.search(pattern, path)} == large


def test_proxy_timeouts_exceed_the_service_timeout() -> None:
    longest = gunicorn_setting("timeout")
    assert [seconds(each) > longest for each in directive(NGINX, "proxy_read_timeout")] == [True]
    assert [seconds(each) > longest for each in directive(CADDY, "response_header_timeout")] == [True]
    (ingress,) = [each for each in objects() if each["kind"] == "Ingress"]
    assert int(ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-read-timeout"]) > longest


def test_proxies_close_idle_connections_before_the_service() -> None:
    kept = gunicorn_setting("keepalive")
    for name in ("nginx/upstream.conf", "nginx/upstream-compose.conf"):
        assert [seconds(each) < kept for each in directive(text(name), "keepalive_timeout")] == [True]
    assert [seconds(each) < kept for each in directive(CADDY, "keepalive")] == [True]


def test_stop_grace_periods_exceed_the_graceful_timeout() -> None:
    least = gunicorn_setting("graceful_timeout") + 10
    for file in OWN_COMPOSE_FILES:
        for name, service in own_services(file).items():
            assert name == "migrate" or seconds(service["stop_grace_period"]) >= least
    for name in ("site-search.service", "site-search-worker.service"):
        (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", text(f"systemd/{name}"), re.MULTILINE)
        assert int(stop) >= least
    periods = [pod["terminationGracePeriodSeconds"] for pod in pods() if "terminationGracePeriodSeconds" in pod]
    assert len(periods) == 2
    assert min(periods) >= least


@pytest.mark.parametrize("source", [NGINX, CADDY], ids=["nginx", "Caddy"])
def test_error_responses_of_the_proxies_match_the_services_format(source: str) -> None:
    bodies = re.findall(r"(?:(\d{3}) )?['`](\{.*?\})['`](?: (\d{3}))?", source)
    rejections = {int(before or after): json.loads(body) for before, body, after in bodies}
    assert set(rejections) == {413, 503}
    for status, body in rejections.items():
        assert STATUS[ErrorCode(body["error"])] == status
        assert body["message"]
    assert rejections[503]["retry_after"] == 5
    assert re.search(r"Retry-After 5\b", source)


# Containers and units are sandboxed.


@pytest.mark.parametrize("file", OWN_COMPOSE_FILES, ids=lambda file: file.name)
def test_every_container_is_sandboxed(file: Path) -> None:
    loaded = compose(file)
    for name, service in loaded["services"].items():
        # A browser writes to its home folder; it has no data, and reaches nothing.
        assert service["read_only"] is (name != "browser"), name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}, name
        assert service["restart"] in ("unless-stopped", "no"), name
        volumes = {each.partition(":")[0] for each in service.get("volumes", ()) if not each.startswith(".")}
        assert volumes <= loaded["volumes"].keys(), name


def test_every_pod_is_sandboxed() -> None:
    (uid,) = re.findall(r"^USER (\d+):\1$", CONTAINERFILE, re.MULTILINE)
    found = list(pods())
    assert len(found) == 4
    for pod in found:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == int(uid)
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["image"] == kustomization()["images"][0]["name"]
            assert container["securityContext"] == {
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            writable = {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
            assert writable - {"/backups"} == {"/data", "/tmp"}


def test_all_systemd_units_have_the_same_hardening() -> None:
    confined = {unit.name: hardening(unit.read_text()) for unit in UNITS if unit.suffix == ".service"}
    assert len(confined) == 3
    assert len(set(confined.values())) == 1
    assert "NoNewPrivileges=true" in confined["site-search.service"]


def hardening(unit: str) -> str:
    return unit.partition("\nUMask=0077\n")[2].partition("\n\n")[0].strip()


def test_every_process_of_the_service_reads_the_same_plans_file() -> None:
    for file in OWN_COMPOSE_FILES:
        for name, service in own_services(file).items():
            assert "./config:/config:ro" in service["volumes"], (file.name, name)
            assert service["env_file"] == [{"path": "settings.env", "required": False}], (file.name, name)
    for pod in pods():
        (container,) = pod["containers"]
        assert {"name": "plans", "mountPath": "/config", "readOnly": True} in container["volumeMounts"]
        assert {"name": "plans", "configMap": {"name": "plans", "optional": True}} in pod["volumes"]


def test_extras_reach_the_image_in_every_compose_file() -> None:
    (default,) = re.findall(r"^ARG EXTRAS=(\S+)$", CONTAINERFILE, re.MULTILINE)
    for file in OWN_COMPOSE_FILES:
        for name, service in own_services(file).items():
            assert service["build"]["args"] == {"EXTRAS": f"${{EXTRAS:-{default}}}"}, (file.name, name)
    optional = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(assignments(text(".env.example"))["EXTRAS"].split(",")) <= optional.keys()


def test_browser_is_reachable_from_the_crawler_and_the_previews_and_reaches_nothing() -> None:
    for file in OWN_COMPOSE_FILES:
        loaded = compose(file)
        (network,) = loaded["services"]["browser"]["networks"]
        assert loaded["networks"][network] == {"internal": True}
        crawling = {"service", "worker"} & loaded["services"].keys()
        assert all(network in loaded["services"][name]["networks"] for name in crawling), file.name
        assert "ports" not in loaded["services"]["browser"]
        alone = compose(DEPLOY / "browser" / "compose.yaml")["services"]["browser"]
        together = loaded["services"]["browser"]
        assert {name: alone[name] for name in ("image", "environment", "mem_limit")} == {
            name: together[name] for name in ("image", "environment", "mem_limit")
        }
    kinds = {each["kind"]: each for each in yaml.safe_load_all(BROWSER_MANIFEST.read_text())}
    assert kinds["Service"]["spec"]["ports"][0]["port"] == 3000
    policies = {
        each["metadata"]["name"]: each["spec"]
        for each in yaml.safe_load_all(BROWSER_MANIFEST.read_text())
        if each["kind"] == "NetworkPolicy"
    }
    assert policies["browser"]["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in policies["browser"]
    (image,) = [each["image"] for each in kinds["Deployment"]["spec"]["template"]["spec"]["containers"]]
    assert image == compose(DEPLOY / "browser" / "compose.yaml")["services"]["browser"]["image"]


def test_every_way_to_run_the_service_has_a_backup_schedule() -> None:
    backups = [words for _, words in commands() if words[1] == "backup"]
    assert len(backups) == len(OWN_COMPOSE_FILES) + 2, "both compose files, Kubernetes, and systemd must be checked"
    assert all(words[2:4] == ["--keep-days", "14"] for words in backups)


def test_kustomization_lists_exactly_the_existing_files() -> None:
    files = {file.name for file in (DEPLOY / "kubernetes").glob("*.yaml")} - {"kustomization.yaml"}
    assert {*kustomization()["resources"], "secret.example.yaml"} == files


# The image.


def test_image_contains_all_files_that_the_program_reads() -> None:
    allowed = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {path for path in allowed if not (PROJECT / path).exists()} == set()
    assert {"app", "backends", "schemas", "docs", "README.md", "wsgi.py", "setup.py"} <= allowed
    copied = set(re.findall(r"[\w.-]+", re.findall(r"^COPY (pyproject.*) \./$", CONTAINERFILE, re.MULTILINE)[0]))
    assert copied <= allowed


def test_image_versions_are_pinned() -> None:
    for file in COMPOSE_FILES:
        for name, service in compose(file)["services"].items():
            image = service["image"]
            assert image == "site-search" or re.search(r":v?\d", image), (file.name, name)
    assert re.search(r"^ARG BASE=\S+:\d\S+$", CONTAINERFILE, re.MULTILINE)


def test_engine_image_versions_are_tested() -> None:
    found: dict[str, set[str]] = {}
    for file in COMPOSE_FILES:
        for service in compose(file)["services"].values():
            name, _, version = service["image"].rpartition(":")
            found.setdefault(name.rpartition("/")[2], set()).add(version)
    engines = (PROJECT / "docs" / "engines.md").read_text()
    tested = re.findall(r"^Tested with (\d[\d.]*\d)", engines, re.MULTILINE)
    assert found["typesense"] == {tested[0]}
    assert {version.removeprefix("v").rpartition(".")[0] for version in found["meilisearch"]} == {tested[1]}


def test_meilisearch_indexing_memory_matches_the_documentation() -> None:
    environment = compose(DEPLOY / "meilisearch" / "compose.yaml")["services"]["meilisearch"]["environment"]
    assert environment["MEILI_MAX_INDEXING_MEMORY"] == "1GiB"
    assert "`MEILI_MAX_INDEXING_MEMORY=1GiB`" in (PROJECT / "docs" / "engines.md").read_text()


def test_engine_services_match_their_own_compose_files() -> None:
    together = compose(DEPLOY / "compose.yaml")["services"]
    for name in ("typesense", "meilisearch"):
        alone = compose(DEPLOY / name / "compose.yaml")["services"][name]
        for part in ("image", "command", "healthcheck", "stop_grace_period"):
            assert together[name].get(part) == alone.get(part), (name, part)
        ours, theirs = together[name]["environment"], alone["environment"]
        assert {each: value for each, value in ours.items() if "KEY" not in each} == {
            each: value for each, value in theirs.items() if "KEY" not in each
        }

"""``doctor``: check the installation. It runs without the application, which does not start with invalid settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict

import click
import orjson

from app import logs
from app.commands.cli import COMMANDS, OperatorCommand
from app.config import ConfigurationError, check_settings, find_misspelled
from app.operations.diagnosis import diagnose
from app.operations.machine_checks import Finding
from app.runtime import create_runtime

MARKS = {"ok": "ok      ", "warning": "WARNING ", "problem": "PROBLEM "}


@click.command("doctor", cls=OperatorCommand, help=COMMANDS["doctor"][1])
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    os.umask(0o077)
    findings = []
    for finding in _findings():
        findings.append(finding)
        if not as_json:
            click.echo(f"{MARKS[finding.level]} {finding.topic}: {finding.message}")
            if finding.remedy:
                click.echo(f"{'':9}{finding.remedy}")
    if as_json:
        click.echo(orjson.dumps([asdict(finding) for finding in findings], option=orjson.OPT_INDENT_2).decode())
    if any(finding.level == "problem" for finding in findings):
        raise SystemExit(1)


def _findings() -> Iterator[Finding]:
    try:
        settings, problems = check_settings()
    except ConfigurationError as error:
        yield Finding("settings", "problem", str(error), "Make the folder writable, or set DATA_DIR to another.")
        return
    logs.configure("WARNING", settings.secrets)
    for problem in problems:
        yield Finding("settings", "problem", problem, "Correct the setting; the service does not start with it.")
    try:
        runtime = create_runtime(settings, background=False)
    except (ConfigurationError, OSError) as error:
        runtime = None
        yield Finding("settings", "problem", str(error), "Correct the setting; the service does not start with it.")
    else:
        if not problems:
            yield Finding("settings", "ok", "The settings are valid.")
    for sentence in find_misspelled():
        yield Finding("settings", "warning", sentence, "Rename or remove the variable; it has no effect.")
    try:
        yield from diagnose(settings, runtime)
    finally:
        if runtime is not None:
            runtime.close()

"""The list of operator commands, and the code that they share.

Each command is imported when it is invoked. Listing the commands therefore loads none of the service, and a command
that needs only the database, such as ``account list``, loads only a fraction of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
import orjson

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError

    from app.config import ConfigurationError
    from app.plans import PlanTable
    from app.storage.database import Database
    from backends.errors import BackendError

OPEN_STORAGE = "open_storage"
"""Key of Flask's ``ScriptInfo.data`` under which ``site-search`` puts the function that opens database and plans."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@dataclass(frozen=True, slots=True)
class CommandSource:
    """The location of a command in the code.

    Attributes:
        path: Module and name, as ``module:name``.
        help: First sentence of the command's help, shown in the list of commands without importing the module.
    """

    path: str
    help: str

    def load(self) -> click.Command:
        """Import the command."""
        module, name = self.path.split(":")
        command: click.Command = getattr(import_module(module), name)
        return command


class Refusal(click.ClickException):
    """An error that a restart does not remedy, such as an invalid setting. The systemd units know its exit code."""

    exit_code = os.EX_CONFIG


def startup_error(error: ConfigurationError) -> click.ClickException:
    """Return the error of a command that cannot start the service."""
    kind = Refusal if error.exit_code == Refusal.exit_code else click.ClickException
    return kind(f"The service cannot start: {error}")


class LazyGroup(click.Group):
    """A group whose commands are imported when they are invoked."""

    def __init__(self, name: str, sources: Mapping[str, CommandSource], **settings: Any):
        super().__init__(name, **settings)
        self.sources = sources

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.sources)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self.sources:
            self.add_command(self.sources[cmd_name].load(), cmd_name)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.sources[name].help) for name in self.list_commands(ctx)])


ACCOUNTS = LazyGroup(
    "account",
    {
        "create": CommandSource("app.commands.accounts:create", "Create an account."),
        "delete": CommandSource("app.commands.accounts:delete", "Delete an account and all its data."),
        "list": CommandSource(
            "app.commands.account_list:list_accounts", "List all accounts with their usage and quotas."
        ),
        "operator": CommandSource(
            "app.commands.accounts:operator", "Let a member use the operator area, or list such members."
        ),
        "reset-codes": CommandSource(
            "app.commands.accounts:reset_codes", "Turn off two-factor authentication for a member who lost their phone."
        ),
        "reset-password": CommandSource(
            "app.commands.accounts:reset_password", "Set a member's password and end their sessions."
        ),
        "resume": CommandSource("app.commands.accounts:resume", "Resume a suspended account."),
        "set-plan": CommandSource("app.commands.accounts:set_plan", "Change an account's plan and its own limits."),
        "suspend": CommandSource("app.commands.accounts:suspend", "Suspend an account without deleting anything."),
    },
    help="Create, list, change, suspend, and delete accounts.",
)

SITES = LazyGroup(
    "site",
    {
        "list": CommandSource(
            "app.commands.site_list:list_all_sites", "List the sites of all accounts with their engines."
        ),
    },
    help="List the sites of all accounts with their engines.",
)

COMMANDS = {
    "account": CommandSource("app.commands.cli:ACCOUNTS", "Create, list, change, suspend, and delete accounts."),
    "backup": CommandSource("app.commands.backup:backup", "Write a backup to FILE while the service runs."),
    "capacity": CommandSource(
        "app.commands.capacity:capacity", "Compute the cores, memory, and disk space that an installation needs."
    ),
    "clicks": CommandSource("app.commands.search:clicks_group", "Rank results by visitors' clicks."),
    "crawl": CommandSource("app.commands.crawl:crawl", "Crawl the website at URL into a site."),
    "database": CommandSource("app.commands.serve:database_group", "Manage the SQL database."),
    "demo": CommandSource("app.commands.demo:demo", "Set up a demo account with documents, and serve."),
    "doctor": CommandSource("app.commands.doctor:doctor", "Check the installation and suggest remedies."),
    "documents": CommandSource("app.commands.documents:group", "Import documents from a file."),
    "openapi": CommandSource("app.commands.serve:openapi", "Write the OpenAPI document to FILE or print it."),
    "restore": CommandSource("app.commands.backup:restore", "Restore a backup from FILE into an empty installation."),
    "search": CommandSource("app.commands.search:search_group", "Rebuild indexes, or move them to another engine."),
    "serve": CommandSource("app.commands.serve:serve", "Serve, on HOST and PORT, until stopped."),
    "site": CommandSource("app.commands.cli:SITES", "List the sites of all accounts with their engines."),
    "worker": CommandSource("app.commands.crawl:worker", "Crawl queued runs until stopped."),
}


class OperatorCommands(LazyGroup):
    """All operator commands. The audit log names the operator as the actor of their changes."""

    def __init__(self, **settings: Any):
        super().__init__("site-search", COMMANDS, **settings)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        is_loaded = cmd_name in self.commands
        command = super().get_command(ctx, cmd_name)
        if command is not None and not is_loaded:
            command = self.commands[cmd_name] = _by_operator(command)
        return command


def _by_operator(command: click.Command) -> click.Command:
    """Return a command that runs as the operator. Flask's own group invokes it, too."""

    def invoke(ctx: click.Context) -> Any:
        from sqlalchemy.exc import DBAPIError

        from app.services.audit_log.actors import OPERATOR, acting
        from app.storage.migrate import NewerTables

        try:
            with acting(OPERATOR):
                return type(command).invoke(command, ctx)
        except NewerTables as error:
            raise Refusal(str(error)) from error
        except DBAPIError as error:
            raise _database_trouble(installation(ctx)[0], error) from error

    wrapped = copy(command)
    wrapped.invoke = invoke  # type: ignore[method-assign]
    return wrapped


def _database_trouble(database: Database, error: DBAPIError) -> Exception:
    """Return the error to report for a database error: one sentence, unless the program is wrong."""
    from sqlalchemy.exc import DBAPIError

    from app.storage.database import is_of_other_tables, is_unavailable
    from app.storage.migrate import NewerTables, TablesState, tables_state

    # Drivers break their messages into several lines.
    unusable = click.ClickException(f"The database cannot be used: {' '.join(str(error.orig).split())}")
    try:
        state = tables_state(database)
    except DBAPIError:
        return unusable
    if state is TablesState.NEWER:
        return Refusal(str(NewerTables()))
    if state is TablesState.OLDER and is_of_other_tables(error):
        return click.ClickException("The database's tables are missing or outdated. Run `database upgrade`.")
    return unusable if is_unavailable(error) and not is_of_other_tables(error) else error


def installation(ctx: click.Context) -> tuple[Database, PlanTable]:
    """Return the database and the plans.

    ``flask`` takes them from the application; ``site-search`` opens them without loading the application.
    """
    from flask.cli import ScriptInfo

    info = ctx.ensure_object(ScriptInfo)
    if OPEN_STORAGE in info.data:
        storage: tuple[Database, PlanTable] = info.data[OPEN_STORAGE]()
        return storage
    runtime = info.load_app().extensions["runtime"]
    return runtime.database, runtime.plans


def show(as_json: bool, value: Any, text: str) -> None:
    """Print ``value`` as JSON or ``text`` for people."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if as_json else text)


def engine_problem(error: BackendError) -> str:
    """Return what went wrong with the engine, followed by its own words, which only operators may see."""
    return f"{error} ({error.__cause__})" if error.__cause__ else str(error)

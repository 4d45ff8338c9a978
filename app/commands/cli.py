"""Operator commands: ``flask --app wsgi …``."""

from __future__ import annotations

from copy import copy
from typing import Any

import click
import orjson
from flask import Flask, current_app
from flask.cli import AppGroup, ScriptInfo
from sqlalchemy.exc import DBAPIError

from app.clock import isoformat, today
from app.commands.account_list import ORDERS, limits_of, shown_usage, sort_accounts, usage_table
from app.config import ConfigurationError
from app.errors import ApiError
from app.models import Account
from app.operations import accounts as operations
from app.plans import LIMIT_NAMES, parse_limit
from app.runtime import runtime
from app.services.accounts.members import find_members
from app.services.accounts.usage import list_account_usage
from app.services.audit_log.actors import OPERATOR, acting
from app.services.sites import MAX_INT64
from app.storage.migrate import TablesState, tables_state
from schemas.accounts import MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH, is_email


class OperatorCommands(AppGroup):
    """All commands. They are loaded when one is asked for, since a process that answers requests runs none."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def _load(self) -> None:
        if self.commands:
            return
        from app.commands import backup, clicks, crawl, documents, search, serve, setup

        for command in (
            account_group,
            backup.backup,
            backup.restore,
            clicks.group,
            crawl.crawl,
            crawl.worker,
            documents.group,
            search.group,
            serve.serve,
            setup.database_group,
            setup.demo,
            setup.openapi,
        ):
            self.add_command(_by_operator(command))


def _by_operator(command: click.Command) -> click.Command:
    """A command whose changes the audit log says are the operator's. Flask's own group invokes it, and no other one."""

    def invoke(ctx: click.Context) -> Any:
        try:
            with acting(OPERATOR):
                return type(command).invoke(command, ctx)
        except DBAPIError as error:
            with ctx.ensure_object(ScriptInfo).load_app().app_context():
                raise _database_trouble(error) from error

    wrapped = copy(command)
    wrapped.invoke = invoke  # type: ignore[method-assign]
    return wrapped


def _database_trouble(error: DBAPIError) -> Exception:
    """The message for an error of the database: itself, unless its tables or its absence are the cause."""
    try:
        state = tables_state(runtime().database)
    except DBAPIError:
        return click.ClickException(f"The database cannot be used: {error.orig}")
    if state is TablesState.CURRENT:
        return error
    if state is TablesState.NEWER:
        return click.ClickException("The database's tables are of a newer version of the program. Run that one.")
    return click.ClickException("The database's tables are missing or of an older version. Run `database upgrade`.")


def register(app: Flask) -> None:
    """Add the commands to ``app``."""
    app.cli = OperatorCommands(app.name)


account_group = AppGroup("account", help="Create, list, change, suspend, and delete accounts.")
MAX_REASON_LENGTH = 500
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def show(as_json: bool, value: Any, text: str) -> None:
    """Print ``value`` as JSON or ``text`` for people."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() if as_json else text)


def _shown(account: Account) -> dict[str, Any]:
    return {
        "id": account.id,
        "email": account.email,
        "name": account.name,
        "plan": account.plan,
        "limits": account.limit_overrides,
        "suspended_at": None if account.suspended_at is None else isoformat(account.suspended_at),
        "suspension_reason": account.suspension_reason,
        "created_at": isoformat(account.created_at),
    }


def _get(email: str) -> Account:
    """The account of a member, or with an id: an e-mail may belong to several accounts."""
    with runtime().database.read() as session:
        if email.isascii() and email.isdigit() and int(email) <= MAX_INT64:
            account = session.get(Account, int(email))
            found = [account] if account else []
        else:
            found = [member.account for member in find_members(session, email)]
    if not found:
        raise click.ClickException(f"No account has the {'id' if email.isdigit() else 'e-mail address'} {email}.")
    if len(found) > 1:
        named = ", ".join(f"{account.id} ({account.name})" for account in found)
        raise click.ClickException(f"Several accounts have the e-mail address {email}; give the id of one: {named}.")
    return found[0]


def _check_plan(plan: str) -> None:
    if plan not in runtime().plans:
        raise click.ClickException(f"Unknown plan {plan!r}. The plans are {', '.join(runtime().plans)}.")


def _check_password(password: str) -> None:
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise click.ClickException(f"The password must have {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters.")


password_option = click.option(
    "--password",
    envvar="ACCOUNT_PASSWORD",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="Prompted for if omitted. Prefer the environment variable ACCOUNT_PASSWORD to the command line.",
)


@account_group.command("create")
@click.option("--email", required=True)
@click.option("--name", required=True)
@password_option
@click.option("--plan", default=None, help="Default: the setting DEFAULT_PLAN.")
@json_option
def create(email: str, name: str, password: str, plan: str | None, as_json: bool) -> None:
    """Create an account."""
    current_runtime = runtime()
    plan = plan or current_runtime.settings.default_plan
    _check_plan(plan)
    _check_password(password)
    if not is_email(email.strip()):
        raise click.ClickException(f"{email} is not a valid e-mail address.")
    if not 1 <= len(name.strip()) <= 100:
        raise click.ClickException("The name must have 1 to 100 characters.")
    try:
        account = operations.create_account(
            current_runtime, name=name.strip(), email=email, password=password, plan=plan
        )
    except ApiError as error:
        raise click.ClickException(f"{email}: {error.message}.") from error
    show(as_json, _shown(account), f"Created account {account.id} for {account.email} on plan {account.plan}.")


def _override_options(command: Any) -> Any:
    for name in reversed(LIMIT_NAMES):
        command = click.option(f"--{name.replace('_', '-')}", name, default=None, metavar="N|unlimited")(command)
    return command


@account_group.command("set-plan")
@click.argument("email")
@click.argument("plan")
@_override_options
@json_option
def set_plan(email: str, plan: str, as_json: bool, **given: str | None) -> None:
    """Change an account's plan. Limits given here override the plan's; earlier overrides are removed."""
    current_runtime = runtime()
    _check_plan(plan)
    try:
        overrides = {
            name: parse_limit(value, f"--{name.replace('_', '-')}")
            for name, value in given.items()
            if value is not None
        }
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error
    account = _get(email)
    account = operations.set_plan(current_runtime, account.id, plan, overrides)
    show(as_json, _shown(account), f"{account.email} is on plan {plan}{' with overrides' if overrides else ''}.")


@account_group.command("reset-password")
@click.argument("email")
@password_option
@json_option
def reset_password(email: str, password: str, as_json: bool) -> None:
    """Set a new password of the member with this e-mail, and end their sessions."""
    _check_password(password)
    member = operations.set_password(runtime(), email, password)
    if member is None:
        raise click.ClickException(f"No account has the e-mail address {email}.")
    show(as_json, _shown(member.account), f"{member.email} has a new password. All sessions have ended.")


@account_group.command("suspend")
@click.argument("email")
@click.option("--reason", default="", help="Told to whoever is kept from the account.")
@json_option
def suspend(email: str, reason: str, as_json: bool) -> None:
    """Suspend an account: its keys and members are refused, and nothing is crawled. Nothing is lost."""
    reason = reason.strip()
    if len(reason) > MAX_REASON_LENGTH:
        raise click.ClickException(f"The reason must have at most {MAX_REASON_LENGTH} characters.")
    operations.suspend_account(runtime(), _get(email).id, reason)
    account = _get(email)
    show(as_json, _shown(account), f"{account.email} is suspended.")


@account_group.command("resume")
@click.argument("email")
@json_option
def resume(email: str, as_json: bool) -> None:
    """Let a suspended account be used again, as it was."""
    operations.resume_account(runtime(), _get(email).id)
    account = _get(email)
    show(as_json, _shown(account), f"{account.email} can be used again.")


@account_group.command("reset-codes")
@click.argument("email")
@json_option
def reset_codes(email: str, as_json: bool) -> None:
    """Let the member with this e-mail log in without one-time codes, after a lost phone."""
    account = _get(email)
    member = operations.reset_codes(runtime(), email)
    if member is None:
        raise click.ClickException(f"No account has the e-mail address {email}.")
    show(as_json, _shown(account), f"{member.email} logs in without one-time codes.")


@account_group.command("list")
@click.option(
    "--sort",
    "order",
    type=click.Choice(list(ORDERS)),
    default="id",
    show_default=True,
    help="Numbers begin with the largest. quota: the largest part of any quota that is used.",
)
@json_option
def list_all(order: str, as_json: bool) -> None:
    """List all accounts with their usage and quotas. Searches are up to a minute behind."""
    with runtime().database.read() as session:
        accounts_used = list_account_usage(session, today())
    found = sort_accounts(((usage, limits_of(runtime().plans, usage.account)) for usage in accounts_used), order)
    listed = [{**_shown(usage.account), **shown_usage(usage, limits)} for usage, limits in found]
    show(as_json, listed, usage_table(found) if found else "No accounts.")


@account_group.command("delete")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete(email: str, yes: bool, as_json: bool) -> None:
    """Delete an account and all its data."""
    current_runtime = runtime()
    account = _get(email)
    if not yes:
        click.confirm(f"Delete {account.email} with all its sites, keys, documents, and analytics?", abort=True)
    operations.delete_account(current_runtime, account.id)
    current_app.extensions["jobs"].run_all()
    show(as_json, {"deleted": account.id}, f"Deleted {account.email}.")

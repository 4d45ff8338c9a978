"""``account create``, ``set-plan``, ``reset-password``, ``suspend``, ``resume``, ``reset-codes``, and ``delete``."""

from __future__ import annotations

from typing import Any

import click
from flask import current_app
from flask.cli import with_appcontext

from app.commands.cli import OperatorCommand, json_option, print_result
from app.config import ConfigurationError
from app.errors import ApiError
from app.models import Account
from app.operations import operator as operations
from app.plans import LIMIT_NAMES, parse_limit
from app.runtime import runtime
from app.services.accounts.members import find_members
from app.services.sites import MAX_INT64, describe_account
from schemas.accounts import MAX_PASSWORD_LENGTH, MAX_REASON_LENGTH, MIN_PASSWORD_LENGTH, is_email


def find_account(email: str) -> Account:
    """Return the account with this ID, or with a member who has this email address.

    Raises:
        click.ClickException: No account matches, or several do.
    """
    with runtime().database.read() as session:
        if email.isascii() and email.isdigit() and int(email) <= MAX_INT64:
            account = session.get(Account, int(email))
            accounts = [account] if account else []
        else:
            accounts = [member.account for member in find_members(session, email)]
    if not accounts:
        raise click.ClickException(f"No account has the {'ID' if email.isdigit() else 'email address'} {email}.")
    if len(accounts) > 1:
        choices = ", ".join(f"{account.id} ({account.name})" for account in accounts)
        raise click.ClickException(
            f"Several accounts have the email address {email}; specify one of their IDs: {choices}."
        )
    return accounts[0]


def _check_plan(plan: str) -> None:
    if plan not in runtime().plans:
        raise click.ClickException(f"Unknown plan {plan!r}. The plans are {', '.join(runtime().plans)}.")


def _check_password(password: str) -> None:
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise click.ClickException(f"The password must have {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters.")


_PASSWORD_HELP = "Prompted for if omitted. Prefer the environment variable ACCOUNT_PASSWORD to the command line."


@click.command("create", cls=OperatorCommand)
@with_appcontext
@click.option("--email", required=True)
@click.option("--name", required=True)
@click.option("--password", envvar="ACCOUNT_PASSWORD", help=_PASSWORD_HELP)
@click.option("--invite", is_flag=True, help="Send the owner an email with a link to choose a password.")
@click.option("--plan", default=None, help="Default: the setting DEFAULT_PLAN.")
@json_option
def create(email: str, name: str, password: str | None, invite: bool, plan: str | None, as_json: bool) -> None:
    current_runtime = runtime()
    if plan is not None:
        _check_plan(plan)
    if invite:
        password = None
    else:
        password = password or click.prompt("Password", hide_input=True, confirmation_prompt=True)
        _check_password(password)
    if not is_email(email.strip()):
        raise click.ClickException(f"{email} is not a valid email address.")
    if not 1 <= len(name.strip()) <= 100:
        raise click.ClickException("The name must have 1 to 100 characters.")
    try:
        account = operations.create_account(
            current_runtime, name=name.strip(), email=email, password=password, plan=plan
        )
    except ApiError as error:
        raise click.ClickException(f"{email}: {error.message}.") from error
    text = f"Created account {account.id} for {account.email} on plan {account.plan}."
    print_result(as_json, describe_account(account), f"{text} The invitation is on its way." if invite else text)


def _override_options(command: Any) -> Any:
    for name in reversed(LIMIT_NAMES):
        command = click.option(f"--{name.replace('_', '-')}", name, default=None, metavar="N|unlimited")(command)
    return command


@click.command("set-plan", cls=OperatorCommand)
@with_appcontext
@click.argument("email")
@click.argument("plan")
@_override_options
@json_option
def set_plan(email: str, plan: str, as_json: bool, **options: str | None) -> None:
    current_runtime = runtime()
    _check_plan(plan)
    try:
        overrides = {
            name: parse_limit(value, f"--{name.replace('_', '-')}")
            for name, value in options.items()
            if value is not None
        }
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error
    account = find_account(email)
    account = operations.change_plan(current_runtime, account.id, plan=plan, overrides=overrides)
    text = f"{account.email} is on plan {plan}{' with overrides' if overrides else ''}."
    print_result(as_json, describe_account(account), text)


@click.command("reset-password", cls=OperatorCommand)
@with_appcontext
@click.argument("email")
@click.option(
    "--password",
    envvar="ACCOUNT_PASSWORD",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help=_PASSWORD_HELP,
)
@json_option
def reset_password(email: str, password: str, as_json: bool) -> None:
    _check_password(password)
    try:
        member = operations.set_password(runtime(), email, password)
    except ApiError as error:
        raise click.ClickException(f"{error.message}.") from error
    if member is None:
        raise click.ClickException(f"No account has the email address {email}.")
    print_result(
        as_json, describe_account(member.account), f"{member.email} has a new password. All sessions have ended."
    )


@click.command("suspend", cls=OperatorCommand)
@with_appcontext
@click.argument("email")
@click.option("--reason", default="", help="Message shown to blocked users.")
@json_option
def suspend(email: str, reason: str, as_json: bool) -> None:
    reason = reason.strip()
    if len(reason) > MAX_REASON_LENGTH:
        raise click.ClickException(f"The reason must have at most {MAX_REASON_LENGTH} characters.")
    operations.suspend_account(runtime(), find_account(email).id, reason)
    account = find_account(email)
    print_result(as_json, describe_account(account), f"{account.email} is suspended.")


@click.command("resume", cls=OperatorCommand)
@with_appcontext
@click.argument("email")
@json_option
def resume(email: str, as_json: bool) -> None:
    operations.resume_account(runtime(), find_account(email).id)
    account = find_account(email)
    print_result(as_json, describe_account(account), f"{account.email} can be used again.")


@click.command("reset-codes", cls=OperatorCommand)
@with_appcontext
@click.argument("email")
@json_option
def reset_codes(email: str, as_json: bool) -> None:
    account = find_account(email)
    member = operations.reset_codes(runtime(), email)
    if member is None:
        raise click.ClickException(f"No account has the email address {email}.")
    print_result(as_json, describe_account(account), f"{member.email} logs in without one-time codes.")


@click.command("operator", cls=OperatorCommand)
@with_appcontext
@click.argument("email", required=False)
@click.option("--account", "account_id", type=int, help="The member's account, if the address has several.")
@click.option("--revoke", is_flag=True, help="Revoke the right, effective with the next request.")
@json_option
def operator(email: str | None, account_id: int | None, revoke: bool, as_json: bool) -> None:
    current_runtime = runtime()
    if email is None:
        if revoke or account_id is not None:
            raise click.UsageError("Specify the member's email address.")
        with current_runtime.database.read() as session:
            members = list(operations.list_operators(session))
        text = "\n".join(f"{member.email} (account {member.account_id})" for member in members) or "No operators."
    elif revoke:
        members = operations.revoke_operator(current_runtime, email)
        if not members:
            raise click.ClickException(f"No operator has the email address {email}.")
        text = f"{email} is no longer an operator."
    else:
        try:
            member = operations.name_operator(current_runtime, email, account_id)
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        members = [member]
        text = f"{member.name}, {member.email}, of account {member.account_id} may use /operator. "
        text += "Sessions of the member in which no one-time code was given have ended."
        if member.codes_since is None:
            text += " The pages open once the member has turned on two-factor authentication."
    print_result(as_json, [{"email": member.email, "account_id": member.account_id} for member in members], text)


@click.command("delete", cls=OperatorCommand)
@with_appcontext
@click.argument("email")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete(email: str, yes: bool, as_json: bool) -> None:
    current_runtime = runtime()
    account = find_account(email)
    if not yes:
        click.confirm(f"Delete {account.email} with all its sites, keys, documents, and analytics?", abort=True)
    operations.delete_account(current_runtime, account.id)
    current_app.extensions["jobs"].run_all()
    print_result(as_json, {"deleted": account.id}, f"Deleted {account.email}.")

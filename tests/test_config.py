"""Settings: defined in one table, read from the environment, and validated at startup."""

from __future__ import annotations

import os
import stat
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from app.application import create_app
from app.config import SERVER_SETTINGS, SETTINGS, ConfigurationError, Settings, find_misspelled, load_settings


def load(folder: Path, **environ: str) -> Settings:
    return load_settings({"DATA_DIR": str(folder), **environ})


def test_every_setting_has_a_default(tmp_path: Path) -> None:
    settings = load(tmp_path)

    assert settings.database_url == f"sqlite:///{tmp_path}/service.db"
    assert settings.search_url == f"tantivy://{tmp_path}/indexes"
    assert settings.limits_url == f"sqlite:///{tmp_path}/counters.db"
    assert (settings.max_body_bytes, settings.max_bulk_body_bytes) == (1_048_576, 16_777_216)
    assert (settings.trusted_proxies, settings.default_plan, settings.event_retention_days) == (0, "free", 400)


def test_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    empty = dict.fromkeys((name for name in SETTINGS if name != "DATA_DIR"), "")

    assert load(tmp_path, **empty) == load(tmp_path)


def test_environment_variables_override_defaults(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        PUBLIC_URL="https://search.example/",
        MAX_BODY_BYTES="5",
        REGISTRATION="No",
        LIMITS_TIMEOUT_SECONDS="0.25",
    )

    assert settings.public_url == "https://search.example"
    assert (settings.max_body_bytes, settings.registration, settings.limits_timeout_seconds) == (5, False, 0.25)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("true", True), ("YES", True), ("off", False), ("0", False)])
def test_boolean_settings_accept_common_spellings(tmp_path: Path, text: str, value: bool) -> None:
    assert load(tmp_path, REGISTRATION=text).registration is value


_OIDC = {
    "OIDC_ISSUER": "https://id.example.com/realms/x",
    "OIDC_CLIENT_ID": "search",
    "OIDC_CLIENT_SECRET": "secret",
    "PUBLIC_URL": "https://search.example",
}
WEBHOOK_SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
WRONG: list[dict[str, str]] = [
    {"LLM_URL": "https://api.example.com/v1"},
    {"LLM_URL": "api.example.com/v1", "LLM_MODEL": "small"},
    {"LLM_URL": "https://user:password@api.example.com/v1", "LLM_MODEL": "small"},
    {"LLM_URL": "https://api.example.com/v1?key=secret", "LLM_MODEL": "small"},
    {"LLM_URL": "https://api.example.com:99999/v1", "LLM_MODEL": "small"},
    {"LLM_URL": "https://api.example.com:port/v1", "LLM_MODEL": "small"},
    {"LLM_URL": "https://api.example.com:0/v1", "LLM_MODEL": "small"},
    {"LLM_URL": "https://api.example.com/v 1", "LLM_MODEL": "small"},
    {"LLM_URL": "https://api.example.com/v1\n", "LLM_MODEL": "small"},
    {"LLM_URL": "https://api.example.com/v1", "LLM_MODEL": "small", "LLM_KEY": "two words"},
    {"LLM_MODEL": "small"},
    {"LLM_TIMEOUT": "0"},
    {"LLM_TIMEOUT": "121"},
    {"EMBEDDER": "minilm", "EMBEDDER_MODEL": "small"},
    {"EMBEDDER": "other"},
    {"PUBLIC_URL": "http://["},
    {"OIDC_ISSUER": "https://["},
    {"EMBEDDER": "http://[api.example.com/v1/embeddings", "EMBEDDER_MODEL": "small"},
    {"EMBEDDER": "https://api.example.com/v1/embeddings"},
    {"EMBEDDER": "http://127.0.0.1:99999/v1/embeddings?key=secret", "EMBEDDER_MODEL": "small"},
    {"EMBEDDER": "ftp://api.example.com/v1/embeddings", "EMBEDDER_MODEL": "small"},
    {"EMBEDDER": "https:///v1/embeddings", "EMBEDDER_MODEL": "small"},
    {"EMBEDDER": "https://user:password@api.example.com/v1/embeddings", "EMBEDDER_MODEL": "small"},
    {"EMBEDDER": "https://api.example.com/v1/embeddings", "EMBEDDER_MODEL": "small", "EMBEDDER_KEY": "two words"},
    {"EMBEDDER": "https://api.example.com/v1/embeddings", "EMBEDDER_MODEL": "small", "EMBEDDER_KEY": "schlüssel"},
    {"EMBEDDER_MODEL": "small"},
    {"EMBEDDER": "fastembed", "EMBEDDER_KEY": "secret"},
    {"EMBEDDER_KEY": "secret"},
    {"DOCS_SEARCH_KEY": "svc_prv_secret"},
    {"MAX_BODY_BYTES": "many"},
    {"MAX_BODY_BYTES": "0"},
    {"MAX_BULK_BODY_BYTES": "-1"},
    {"MAX_BODY_BYTES": "1.5"},
    {"CRAWL_BROWSER": "chromium"},
    {"CRAWL_BROWSER": "ftp://browser:3000"},
    {"TRUSTED_PROXIES": "-1"},
    {"DATABASE_TIMEOUT_SECONDS": "0"},
    {"LIMITS_TIMEOUT_SECONDS": "nan"},
    {"DATABASE_TIMEOUT_SECONDS": "inf"},
    {"EVENT_RETENTION_DAYS": "90"},
    {"REGISTRATION": "maybe"},
    {"LOG_LEVEL": "LOUD"},
    {"SECRET_KEY": "short"},
    {"OPERATOR_TOKEN": "x" * 31},
    {"OPERATOR_TOKEN": f"{'x' * 32} {'y' * 31}"},
    {"OPERATOR_TOKEN": " ".join(("x" * 32, "y" * 32, "z" * 32))},
    {"OPERATOR_TOKEN": "ü" * 32},
    {"OPERATOR_WEBHOOK_URL": "https://billing.example/hook"},
    {"OPERATOR_WEBHOOK_SECRET": WEBHOOK_SECRET},
    {"OPERATOR_WEBHOOK_URL": "ftp://billing.example/", "OPERATOR_WEBHOOK_SECRET": WEBHOOK_SECRET},
    {"OPERATOR_WEBHOOK_URL": "https://[", "OPERATOR_WEBHOOK_SECRET": WEBHOOK_SECRET},
    {"OPERATOR_WEBHOOK_URL": "https://billing.example/", "OPERATOR_WEBHOOK_SECRET": WEBHOOK_SECRET[6:]},
    {"OPERATOR_WEBHOOK_URL": "https://billing.example/", "OPERATOR_WEBHOOK_SECRET": "whsec_c2hvcnQ="},
    {"OPERATOR_WEBHOOK_URL": "https://billing.example/", "OPERATOR_WEBHOOK_SECRET": "whsec_ü"},
    {"UPGRADE_URL": "pay.example/{plan}"},
    {"UPGRADE_URL": "javascript:alert({account})"},
    {"UPGRADE_URL": "https://{plan}.pay.example/"},
    {"UPGRADE_URL": "https://pay.example/{account}/{email}"},
    {"UPGRADE_URL": "https://["},
    {"STATUS_URL": "status.example"},
    {"PRIVACY_URL": "javascript:alert(1)"},
    {"TERMS_URL": "//terms.example/"},
    {"TERMS_URL": "/\\terms.example/"},
    {"IMPRINT_URL": "https://user:password@example.com/imprint"},
    {"IMPRINT_URL": "https://example.com/the imprint"},
    {"IMPRINT_URL": "/imprint\n"},
    {"PUBLIC_URL": "search.example"},
    {"PUBLIC_URL": "ftp://search.example"},
    {"PUBLIC_URL": "https://search.example/?x=1"},
    {"SEARCH_PUBLIC_URL": "engine.example"},
    {"SEARCH_PUBLIC_URL": "https://engine.example"},
    {"DATABASE_URL": "postgresql://localhost/x"},
    {"SMTP_URL": "mail.example.com", "MAIL_FROM": "a@example.com", "PUBLIC_URL": "https://search.example"},
    {"SMTP_URL": "smtp://mail.example.com", "PUBLIC_URL": "https://search.example"},
    {"SMTP_URL": "smtp://mail.example.com", "MAIL_FROM": "a@example.com"},
    {"MAIL_FROM": "somebody"},
    {"OPERATOR_CONTACT": "help@example.com\nor not"},
    {**_OIDC, "OIDC_ISSUER": "http://id.example.com"},
    {**_OIDC, "OIDC_ISSUER": "id.example.com"},
    {**_OIDC, "OIDC_ISSUER": "https://me:hidden@id.example.com"},
    {**_OIDC, "OIDC_ISSUER": "https://id.example.com/?realm=x"},
    *({**_OIDC, name: ""} for name in ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "PUBLIC_URL")),
    {**_OIDC, "OIDC_ALLOWED_DOMAINS": "@example.com"},
    {"OIDC_NAME": "Example"},
    {"PASSWORD_LOGIN": "false"},
]


@pytest.mark.parametrize("environ", WRONG, ids=str)
def test_invalid_or_contradictory_setting_raises_configuration_error(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, **environ)

    assert any(name in str(error.value) for name in (*environ, "SECRET_KEY"))


def test_complete_oidc_settings_are_accepted(tmp_path: Path) -> None:
    settings = load(tmp_path, **_OIDC, OIDC_ALLOWED_DOMAINS="Example.com, other.example", PASSWORD_LOGIN="false")
    assert settings.allowed_domains == {"example.com", "other.example"}
    assert settings.provider_name == "id.example.com"
    assert load(tmp_path, **{**_OIDC, "OIDC_ISSUER": "http://localhost:8080"}).oidc_issuer == "http://localhost:8080"


def test_one_or_two_operator_tokens_are_accepted(tmp_path: Path) -> None:
    tokens = ("x" * 32, "y" * 40)
    assert load(tmp_path).operator_tokens == load(tmp_path, OPERATOR_TOKEN=" \n").operator_tokens == ()
    assert load(tmp_path, OPERATOR_TOKEN=f"{tokens[0]}\n").operator_tokens == tokens[:1]
    assert load(tmp_path, OPERATOR_TOKEN=f" {tokens[0]}  {tokens[1]}").operator_tokens == tokens


UNUSABLE: list[dict[str, Any]] = [
    {"search_url": "elastic://localhost"},
    {"search_url": "nonsense"},
    {"limits_url": "memcached://localhost"},
    {"database_url": "mysql://localhost/x", "secret_key": "x" * 32},
    {"database_url": "sqlite://"},
    {"default_plan": "gold"},
    {"plans_file": "/nowhere/plans.toml"},
]


@pytest.mark.parametrize("overrides", UNUSABLE, ids=str)
def test_unusable_setting_raises_configuration_error_when_the_app_is_created(
    tmp_path: Path, overrides: dict[str, Any]
) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, **overrides)

    with pytest.raises(ConfigurationError):
        create_app(settings)


def test_unknown_setting_raises_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="max_body"):
        load_settings({}, data_dir=str(tmp_path), max_body=5)


class TestSecret:
    """There is no default secret."""

    def test_secret_is_created_once_and_readable_only_by_its_owner(self, tmp_path: Path) -> None:
        first, second = load(tmp_path), load(tmp_path)

        assert len(first.secret_key) >= 32
        assert first.secret_key == second.secret_key
        assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
        assert [file.name for file in tmp_path.iterdir()] == ["secret_key"]

    def test_power_failure_keeps_the_secret_and_its_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """All keys are hashed with it."""
        flushed: list[tuple[int, list[str]]] = []

        def flush(descriptor: int) -> None:
            status = os.fstat(descriptor)
            names = os.listdir(descriptor) if stat.S_ISDIR(status.st_mode) else []
            flushed.append((status.st_ino, names))

        monkeypatch.setattr(os, "fsync", flush)
        load(tmp_path)

        assert flushed == [((tmp_path / "secret_key").stat().st_ino, []), (tmp_path.stat().st_ino, ["secret_key"])]

    def test_each_installation_gets_its_own_secret(self, tmp_path: Path) -> None:
        assert load(tmp_path / "a").secret_key != load(tmp_path / "b").secret_key

    def test_damaged_secret_file_raises_configuration_error(self, tmp_path: Path) -> None:
        (tmp_path / "secret_key").write_text("short\n")

        with pytest.raises(ConfigurationError, match="secret"):
            load(tmp_path)

    def test_secret_key_variable_is_used_without_creating_a_file(self, tmp_path: Path) -> None:
        assert load(tmp_path, SECRET_KEY="y" * 40).secret_key == "y" * 40
        assert not (tmp_path / "secret_key").exists()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CRAWL_PRIVATE_ADDRESS", "CRAWL_PRIVATE_ADDRESSES"),
        ("CRAWL_PRIVATE", "CRAWL_PRIVATE_ADDRESSES"),
        ("ALLOW_PRIVATE_ADDRESSES", "CRAWL_PRIVATE_ADDRESSES"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("EMBEDDING_MODEL", "EMBEDDER_MODEL"),
        ("PUBLICURL", "PUBLIC_URL"),
        ("secret_key", "SECRET_KEY"),
        ("REGISTRATIONS", "REGISTRATION"),
        ("WEB_THREAD", "WEB_THREADS"),
    ],
)
def test_variable_that_resembles_a_setting_is_named(name: str, meant: str) -> None:
    (sentence,) = find_misspelled({name: "1", "HOME": "/root"})

    assert sentence == f"{name} is not a setting of this service; did you mean {meant}?"


def test_variables_of_other_programs_are_not_named() -> None:
    names = {
        *("ACCOUNT_PASSWORD", "APPDATA", "AWS_SECRET_ACCESS_KEY", "CI", "COLORTERM", "DISPLAY", "EDITOR", "FLASK_APP"),
        *("GIT_AUTHOR_NAME", "GPG_KEY", "HOME", "HOSTNAME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"),
        *("LANG", "LC_ALL", "LISTEN_FDS", "LOGNAME", "LS_COLORS", "MAIL", "OLDPWD", "PATH", "PGDATABASE", "PGHOST"),
        *("PROMETHEUS_MULTIPROC_DIR", "PWD", "PYTHONPATH", "PYTHON_VERSION", "REDIS_URL", "SEARCH_SERVICE_HOST"),
        *("SEARCH_SERVICE_PORT", "SHELL", "SHLVL", "SSH_AUTH_SOCK", "SYSTEMD_EXEC_PID", "TERM", "TMPDIR", "TZ", "USER"),
        *("VIRTUAL_ENV", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "XDG_DATA_HOME", *SETTINGS, *SERVER_SETTINGS),
    }
    environment = {**dict.fromkeys(names, "1"), "SEARCH_PORT": "tcp://10.0.0.1:8000"}

    assert list(find_misspelled(environment)) == []


def test_every_key_token_and_password_is_a_secret() -> None:
    servers = {"database_url": "postgresql", "limits_url": "redis", "search_url": "typesense", "crawl_browser": "ws"}
    urls = {name: f"{scheme}://me:{name}%21@host" for name, scheme in servers.items()}
    names = {field.name for field in fields(Settings) if field.name.endswith(("_key", "_secret", "_token"))}
    names.remove("docs_search_key")  # It is in pages.

    settings = Settings(**dict(zip(names, names, strict=True)), **urls)

    assert settings.secrets == {*names, *(f"{name}{end}" for name in urls for end in ("%21", "!"))}
    assert Settings().secrets == set()

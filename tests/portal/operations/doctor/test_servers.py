"""The doctor on database, broker, cache and mail: which host or user is wrong, never a password."""

from __future__ import annotations

import smtplib
import socket
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError

from portal.jobs.selectors import metrics
from portal.operations.doctor import servers
from tests.portal.operations.doctor.support import only

pytestmark = pytest.mark.django_db


def test_a_working_database_is_reported_as_ok() -> None:
    levels = {
        finding.part: finding.level
        for finding in servers.database()
        if finding.part != "migrations"
    }
    assert levels == {"database": "ok", "clock": "ok"}


def test_an_unreachable_database_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise DatabaseError("no")

    monkeypatch.setattr(servers, "database_now", away)
    finding = only(servers.database())
    assert (finding.level, "TESSERA_DATABASE_URL" in finding.remedy) == ("error", True)


def test_a_read_only_database_file_is_an_error(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "db.sqlite3"
    file.touch()
    monkeypatch.setattr(servers.os, "access", lambda path, mode: path != file.parent)
    wrapper = SimpleNamespace(
        vendor="sqlite",
        settings_dict={"NAME": str(file)},
        ensure_connection=lambda: None,
    )
    monkeypatch.setattr(servers, "connection", wrapper)
    finding = only(servers.database())
    assert finding.level == "error" and "not written" in finding.message


def test_a_slow_database_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    assert servers._speed(0.2).level == "warning"
    assert servers._speed(0.001).level == "ok"


def test_pending_migrations_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Executor:
        def __init__(self, connection: object) -> None:
            self.loader = type("L", (), {"graph": type("G", (), {"leaf_nodes": list})})

        def migration_plan(self, targets: object) -> list[tuple[str, bool]]:
            return plan

    monkeypatch.setattr(servers, "MigrationExecutor", Executor)
    plan: list[tuple[str, bool]] = [("jobs.0002_payload_and_request", False)]
    findings = servers._migrations()
    assert (
        findings.level == "error"
        and "1 migrations" in findings.message
        and "migrate" in findings.remedy
    )
    plan = []
    assert servers._migrations().level == "ok"


@pytest.mark.parametrize(("hours", "word"), [(1, "ahead of"), (-1, "behind")])
def test_a_wrong_clock_is_reported(monkeypatch: pytest.MonkeyPatch, hours: int, word: str) -> None:
    real = metrics.database_now
    monkeypatch.setattr(servers, "database_now", lambda: real() - timedelta(hours=hours))
    finding = only(servers.database(), "clock")
    assert finding.level == "warning" and word in finding.message


@pytest.mark.slow
def test_an_unreachable_broker_is_an_error(settings: Any) -> None:
    assert only(servers.broker()).level == "ok"
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    finding = only(servers.broker())
    assert (finding.level, finding.message) == (
        "error",
        "The broker redis://127.0.0.1:1/0 does not answer"
        " (Error 111 connecting to 127.0.0.1:1. Connection refused.).",
    )
    settings.CELERY_BROKER_URL = "redis://:secret@127.0.0.1:1/0"
    assert "secret" not in only(servers.broker()).message


def test_a_cache_that_fails_or_loses_values_is_reported(settings: Any) -> None:
    assert only(servers.cached()).level == "ok"
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    assert "forgets" in only(servers.cached()).message
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1/0"}}
    assert "does not answer" in only(servers.cached()).message
    backend = "portal.core.caches.FallbackCache"  # continues by itself, but is reported
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1/0"}}
    finding = only(servers.cached())
    assert finding.level == "warning" and "each process" in finding.message


def test_missing_or_unreachable_mail_is_reported(settings: Any) -> None:
    assert only(servers.mail()).level == "ok"
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    assert only(servers.mail()).level == "warning"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    finding = only(servers.mail())
    assert finding.level == "error" and "127.0.0.1:1 does not answer" in finding.message


@pytest.mark.parametrize(
    ("failed", "message", "remedy"),
    [
        (smtplib.SMTPAuthenticationError(535, b"no"), "rejects the user or password", "password"),
        (socket.gaierror(-2, "unknown"), "The host mail.lab", "host"),
    ],
)
def test_wrong_mail_settings_are_reported(
    settings: Any, monkeypatch: pytest.MonkeyPatch, failed: Exception, message: str, remedy: str
) -> None:
    def opened() -> None:
        raise failed

    settings.EMAIL_HOST = "mail.lab"
    server = type("Server", (), {"open": staticmethod(opened)})
    monkeypatch.setattr(servers, "get_connection", server)
    finding = only(servers.mail())
    assert message in finding.message and remedy in finding.remedy

"""Checks of database, broker, cache and mail."""

from __future__ import annotations

import os
import secrets
import smtplib
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from django.core.cache import cache
from django.core.mail import get_connection
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from kombu.exceptions import KombuError

from portal.core.mail import mail_works
from portal.jobs.selectors.metrics import database_now
from portal.operations.doctor.findings import DoctorFinding, error, ok, warning

SLOW_DATABASE_S = 0.05  # a page needs a dozen queries
SKEW_S = 5.0  # sessions and tokens are checked by the machine's clock, leases by the database's
BROKER_WAIT_S = 3


def database() -> list[DoctorFinding]:
    """Check that the database answers fast and is migrated, and that its clock is right."""
    try:
        connection.ensure_connection()
        began = time.perf_counter()
        now = database_now()
        took_s = time.perf_counter() - began
    except DatabaseError as cause:
        message = f"The database does not answer ({_reason(cause)})."
        return [error("database", message, "Start it, or correct TESSERA_DATABASE_URL.")]
    if problem := _read_only():
        return [
            error("database", problem, "Give this user write access to the file and its folder.")
        ]
    return [_speed(took_s), _migrations(), _clock((datetime.now(UTC) - now).total_seconds())]


def _reason(exc: Exception) -> str:
    """First line of a driver's message, which names host and user, never the password."""
    return next(iter(str(exc).strip().splitlines()), "") or type(exc).__name__


def _read_only() -> str:
    """Check that SQLite's files can be written: reading works without."""
    if connection.vendor != "sqlite":
        return ""
    file = Path(connection.settings_dict["NAME"])
    if not file.exists() or (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        return ""
    return f"{file} can be read but not written."


def _speed(took_s: float) -> DoctorFinding:
    message = f"{connection.vendor} answers in {1000 * took_s:.1f} ms."
    if took_s > SLOW_DATABASE_S:
        return warning("database", message, "Move it closer, or find out what keeps it busy.")
    return ok("database", message)


def _migrations() -> DoctorFinding:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        message = f"{len(plan)} migrations are not applied, the first is {plan[0][0]}."
        return error("migrations", message, "Run: manage.py migrate")
    return ok("migrations", "All migrations are applied.")


def _clock(ahead_s: float) -> DoctorFinding:
    if abs(ahead_s) > SKEW_S:
        word = "ahead of" if ahead_s > 0 else "behind"
        message = f"This machine's clock is {abs(ahead_s):.0f} s {word} the database's."
        return warning("clock", message, "Synchronise both with a time server (NTP).")
    return ok("clock", f"Within {SKEW_S:.0f} s of the database's.")


def broker() -> list[DoctorFinding]:
    """Check that the broker answers."""
    try:
        with current_app.connection_for_read(connect_timeout=BROKER_WAIT_S) as connection:
            connection.ensure_connection(max_retries=1, timeout=BROKER_WAIT_S)
    except (OSError, KombuError) as exc:
        where = _without_password(settings.CELERY_BROKER_URL)
        message = f"The broker {where} does not answer ({_reason(exc)})."
        remedy = "Start it, or correct TESSERA_BROKER_URL. Until then jobs wait; none are lost."
        return [error("broker", message, remedy)]
    return [ok("broker", f"{urlsplit(settings.CELERY_BROKER_URL).scheme} answers.")]


def cached() -> list[DoctorFinding]:
    """Check that the cache returns stored values."""
    key, value = "doctor", secrets.token_hex(8)
    try:
        cache.set(key, value, 60)
        is_stored = cache.get(key) == value
    except Exception as exc:  # noqa: BLE001 - each backend has errors of its own
        message = f"The cache does not answer ({type(exc).__name__})."
        return [error("cache", message, "Start Redis, or make the cache's folder writable.")]
    if getattr(cache, "is_away", False):
        message = "The shared cache does not answer: each process counts attempts by itself."
        remedy = "Start Redis, or make the cache's folder writable. Sign-in still works."
        return [warning("cache", message, remedy)]
    if not is_stored:
        message = "The cache forgets what is put into it."
        return [error("cache", message, "Sign-in limits depend on it; see CACHES.")]
    return [ok("cache", "It keeps what is put into it.")]


def mail() -> list[DoctorFinding]:
    """Check that mail is configured and its server answers."""
    if not mail_works():
        message = "No mail is sent; invitations and new passwords are shown as links."
        return [warning("mail", message, "Set TESSERA_EMAIL_URL and TESSERA_EMAIL_FROM.")]
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        connection = get_connection()
        connection.open()
        connection.close()
    except smtplib.SMTPAuthenticationError as exc:
        message = f"The mail server {where} rejects the user or password (code {exc.smtp_code})."
        return [error("mail", message, "Correct user and password in TESSERA_EMAIL_URL.")]
    except socket.gaierror:
        message = f"The host {settings.EMAIL_HOST} is unknown."
        return [error("mail", message, "Correct the host in TESSERA_EMAIL_URL.")]
    except OSError as exc:  # smtplib's errors are OSErrors
        message = f"The mail server {where} does not answer ({_reason(exc)})."
        return [error("mail", message, "Correct TESSERA_EMAIL_URL, or start the server.")]
    return [ok("mail", "The mail server answers.")]


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

"""``/healthz``: the process is alive. ``/readyz``: what it needs is there, each part by name.

Both say what the workers' networks run on: ``/healthz`` only if asked for ``?details``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from kombu.exceptions import KombuError

from portal.jobs.selectors import devices_alive, workers_alive

BROKER_WAIT_S = 2  # a probe comes every few seconds; it must not pile up behind a dead broker


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Alive; touches nothing, unless ``?details`` asks what the workers compute on."""
    details = {"devices": _devices()} if "details" in request.GET else {}
    return JsonResponse({"status": "ok"} | details)


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """503 with the failing parts named, 200 when all are well. Names no host and no path."""
    checks: dict[str, Callable[[], str]] = {
        "database": _database,
        "broker": _broker,
        "storage": _storage,
        "worker": _worker,
    }
    parts = {name: check() for name, check in checks.items()}
    ready = all(state == "ok" for state in parts.values())
    status = "ok" if ready else "unavailable"
    body = {"status": status, "parts": parts, "devices": _devices()}
    return JsonResponse(body, status=200 if ready else 503)


def _devices() -> list[str]:
    """What the workers' networks run on: CPU, or a GPU by its model."""
    try:
        return devices_alive()
    except DatabaseError:
        return []


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "does not answer"
    return "ok"


def _broker() -> str:
    try:
        with current_app.connection_for_read(connect_timeout=BROKER_WAIT_S) as broker:
            broker.ensure_connection(max_retries=1, timeout=BROKER_WAIT_S)
    except (OSError, KombuError):
        return "does not answer"
    return "ok"


def _storage() -> str:
    try:
        settings.TESSERA_STORAGE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.TESSERA_STORAGE) as probe:
            probe.write(b"ok")
    except OSError:
        return "cannot be written"
    return "ok"


def _worker() -> str:
    try:
        seen = workers_alive().exists()
    except DatabaseError:
        return "unknown"
    return "ok" if seen else "no sign of life"

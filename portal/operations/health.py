"""``/healthz``: liveness of the process. ``/readyz``: state of each dependency.

Both report the devices of the workers' networks: ``/healthz`` only with ``?details``.
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

from portal.core.http.audit_rules import not_audited
from portal.jobs.selectors.jobs import worker_devices, workers_alive

BROKER_WAIT_S = 2  # probes every few seconds must not pile up if the broker is down


@not_audited("no data of patients")
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer without any query; ``?details`` adds the devices of the workers."""
    details = {"devices": _devices()} if "details" in request.GET else {}
    return JsonResponse({"status": "ok"} | details)


@not_audited("no data of patients")
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200, or 503 if a part fails. The answer names parts, no hosts and no paths."""
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
    """Devices of the workers' networks: CPU, or a GPU by its model."""
    try:
        return worker_devices()
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
        is_alive = workers_alive().exists()
    except DatabaseError:
        return "unknown"
    return "ok" if is_alive else "no heartbeat"

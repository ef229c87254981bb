"""A portal of the benchmark's own: temporary database and storage, a lab, a user, a slide."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class BenchPortal:
    """Portal that the measurements share."""

    folder: Path
    env: dict[str, str]
    lab: Any
    user: Any
    slide_path: Path
    canvas: Any


def portal_open(folder: Path, servers: dict[str, str] | None = None) -> BenchPortal:
    """Set Django up on a fresh database and ingest the sample slide through the services.

    Args:
        servers: addresses of an empty PostgreSQL and a Redis, as settings; None for SQLite and the
            filesystem.
    """
    env = {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
        "TESSERA_DEBUG": "0",
        "TESSERA_DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
        "TESSERA_STORAGE": str(folder / "storage"),
        "TESSERA_BROKER_FOLDER": str(folder / "broker"),
        "TESSERA_LOG_LEVEL": "ERROR",
    } | (servers or {})
    os.environ.update(env)
    import django

    django.setup()
    from django.core.management import call_command

    from ml.imaging.samples.slide import make_sample_slide
    from portal.archive.services.cases import case_create
    from portal.archive.services.items import item_receive
    from portal.jobs.worker.runner import job_run
    from portal.labs.models import Role
    from portal.labs.services.accounts import user_create
    from portal.labs.services.labs import lab_create
    from portal.labs.services.members import member_add

    call_command("migrate", verbosity=0, interactive=False)
    lab = lab_create("Bench", slug="bench")
    user = user_create("bench@bench.example", password="a long enough password")
    member_add(lab, user=user, role=Role.MANAGER)
    path = folder / "sample.tif"
    make_sample_slide(path)
    case = case_create(lab=lab, user=user, accession="B-1", patient_key="p0")
    with path.open("rb") as file:
        received = item_receive(case=case, file=file, filename=path.name, user=user)
    if received.job is not None:
        job_run(received.job.pk)
    received.item.refresh_from_db()
    return BenchPortal(folder, env, lab, user, path, received.item.canvas)


def session_of(user: Any) -> str:
    """The key of a new session, as if the user had signed in."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "allauth.account.auth_backends.AuthenticationBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)

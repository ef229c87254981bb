"""The load against a portal that runs as ``manage.py serve`` starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.bench.measure import Section
from tests.bench.mixed.report import GALLERY, memory_of, section_of
from tests.bench.mixed.users import USERS, Load, Person, scene_of, sit
from tests.bench.portal import BenchPortal, portal_open, session_of
from tests.bench.processes import Usage, usage_of
from tests.chaos.clusters import Postgres, Redis
from tests.ports import free_port

WARM_UP_S = 8.0
SAMPLE_EVERY_S = 5.0
ROOT = Path(__file__).resolve().parents[3]


def mixed_load(portal: BenchPortal, *, minutes: float = 1.0) -> list[Section]:
    """50 people at once, with the worker embedding what they save: times, and memory."""
    people, gallery = _prepare(portal)
    port = free_port()
    with _serving(portal, port) as serve:
        load, usage = asyncio.run(_run(port, serve.pid, portal, people, gallery, minutes * 60))
    on_servers = "TESSERA_BROKER_URL" in portal.env
    return [
        section_of(load, usage, minutes, on_servers=on_servers),
        memory_of(usage, minutes, on_servers=on_servers),
    ]


def mixed_load_on_servers(folder: Path, *, minutes: float = 1.0) -> list[Section]:
    """The same on a PostgreSQL cluster and a Redis made for it.

    A process of its own where Django was set up on another database.
    Raises FileNotFoundError where their programs are not installed.
    """
    folder.chmod(0o755)  # PostgreSQL runs as another user below root
    postgres, redis = Postgres(folder), Redis(folder)
    try:
        postgres.wait()
        redis.wait()
        servers = {"TESSERA_DATABASE_URL": postgres.url, "TESSERA_BROKER_URL": redis.url}
        return mixed_load(portal_open(folder, servers), minutes=minutes)
    finally:
        postgres.kill()
        redis.kill()


def _prepare(portal: BenchPortal) -> tuple[list[Person], list[uuid.UUID]]:
    from ml.roi import load_encoder
    from portal.embeddings.models import Encoder
    from tests.bench.search import _build_index, _fill

    network = load_encoder("default")
    encoder, _ = Encoder.objects.update_or_create(
        name=network.name,
        version=str(network.version),
        config_hash=network.config_hash,
        defaults={"dim": network.dim, "is_default": True},
    )
    Encoder.objects.exclude(pk=encoder.pk).update(is_default=False)
    gallery, _ = _fill(portal, encoder, GALLERY, np.random.default_rng(2))
    _build_index(portal, encoder)
    return [_person(portal, n) for n in range(USERS)], gallery


def _person(portal: BenchPortal, number: int) -> Person:
    from portal.labs.models import Role, User
    from portal.labs.services.members import member_add

    user = User.objects.create(email=f"person{number}@bench.example", password="!")
    member_add(portal.lab, user=user, role=Role.ANNOTATOR)
    csrf = uuid.uuid4().hex
    return Person(f"sessionid={session_of(user)}; csrftoken={csrf}", csrf)


@contextlib.contextmanager
def _serving(portal: BenchPortal, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    with (portal.folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | portal.env, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)
            sys.stderr.write((portal.folder / "serve.log").read_text()[-4000:])


async def _run(
    port: int,
    pid: int,
    portal: BenchPortal,
    people: list[Person],
    gallery: list[uuid.UUID],
    seconds: float,
) -> tuple[Load, list[Usage]]:
    load = Load()
    scene = await scene_of(port, portal, people[0], gallery)
    tasks = [
        asyncio.create_task(sit(port, person, scene, load, random.Random(number)))
        for number, person in enumerate(people)
    ]
    await asyncio.sleep(WARM_UP_S)
    load.is_counting = True
    usage = [usage_of(pid)]
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        await asyncio.sleep(min(SAMPLE_EVERY_S, max(0.1, ends - time.monotonic())))
        usage.append(usage_of(pid))
    load.is_counting = False
    for task in tasks:
        task.cancel()
    for task in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(task, Exception):
            load.errors.append(repr(task))
    return load, usage

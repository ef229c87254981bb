"""Mixed load: people who pan, save and search at once, against the whole portal over HTTP.

``python -m tests.bench.mixed --minutes 10`` runs it alone and prints what it found;
``--servers`` on a PostgreSQL and a Redis of its own; ``--write`` puts it into the report.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import report
from tests.bench.measure import Row, Section
from tests.bench.portal import BenchPortal, portal_open, session_of
from tests.bench.processes import Usage, processor_seconds, usage_of
from tests.bench.requests import Answer, Connections
from tests.chaos.clusters import Postgres, Redis

USERS, CONNECTIONS = 50, 6  # a browser opens six connections to a host
PAN_EVERY_S, TILES_A_PAN = 1.0, 10
SAVE_EVERY_S, SEARCH_EVERY_S = 10.0, 10.0
GALLERY = 20_000
WARM_UP_S = 8.0
SAMPLE_EVERY_S = 5.0
BUDGETS = {"tile": 50, "save": 300, "search": 300}
ROLES = ("front", "web", "worker")
TITLE, ON_SERVERS = "Mixed load", "Mixed load on PostgreSQL and Redis"
ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Person:
    """Who is signed in, and what their browser sends."""

    cookie: str
    csrf: str


@dataclass(slots=True)
class Load:
    """What the people did and how long it took."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    is_counting: bool = False

    def note(self, what: str, began: float, answer: Answer) -> None:
        """Keep one answer."""
        if not self.is_counting:
            return
        self.seconds[what].append(time.perf_counter() - began)
        if answer.status not in (200, 201):
            self.errors.append(f"{what}: {answer.status} {answer.body[:120]!r}")


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to ask for."""

    canvas: str
    tile_url: str
    levels: list[dict[str, int]]
    gallery: list[uuid.UUID]


def mixed_load(portal: BenchPortal, *, minutes: float = 1.0) -> Section:
    """50 people at once, with the worker embedding what they save."""
    people, gallery = _prepare(portal)
    port = _free_port()
    with _serving(portal, port) as serve:
        load, usage = asyncio.run(_run(port, serve.pid, portal, people, gallery, minutes * 60))
    return _section(load, usage, minutes, on_servers="TESSERA_BROKER_URL" in portal.env)


def mixed_load_on_servers(folder: Path, *, minutes: float = 1.0) -> Section:
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
    from portal.retrieval.models import Encoder
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
    from portal.labs.services import member_add

    user = User.objects.create(email=f"person{number}@bench.example", password="!")
    member_add(portal.lab, user=user, role=Role.ANNOTATOR)
    csrf = uuid.uuid4().hex
    return Person(f"sessionid={session_of(user)}; csrftoken={csrf}", csrf)


def _free_port() -> int:
    from portal.config.processes import free_port

    return free_port(HOST, 8950)


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
    scene = await _scene(port, portal, people[0], gallery)
    tasks = [
        asyncio.create_task(_sit(port, person, scene, load, random.Random(number)))
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


async def _scene(port: int, portal: BenchPortal, person: Person, gallery: list[uuid.UUID]) -> Scene:
    canvas = str(portal.canvas.pk)
    connections = Connections(HOST, port, 1)
    for _ in range(150):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            answer = await connections.ask("GET", f"/api/v1/canvases/{canvas}/", person.cookie)
            if answer.status == 200:
                found = json.loads(answer.body)
                levels = sorted(found["levels"], key=lambda level: level["width"])
                return Scene(canvas, found["tile_url"], levels, gallery)
        await asyncio.sleep(0.2)
    raise RuntimeError("the portal does not answer")


async def _sit(port: int, person: Person, scene: Scene, load: Load, dice: random.Random) -> None:
    """One person at a browser: pans, and now and then saves or searches."""
    connections = Connections(HOST, port, CONNECTIONS)
    address = await _own_address(connections, person, scene)
    await asyncio.gather(
        _every(PAN_EVERY_S, dice, lambda: _pan(connections, person, scene, address, load, dice)),
        _every(SAVE_EVERY_S, dice, lambda: _save(connections, person, scene, load, dice)),
        _every(SEARCH_EVERY_S, dice, lambda: _search(connections, person, scene, load, dice)),
    )


async def _own_address(connections: Connections, person: Person, scene: Scene) -> str:
    answer = await connections.ask("GET", f"/api/v1/canvases/{scene.canvas}/", person.cookie)
    return str(json.loads(answer.body)["tile_url"])


async def _every(seconds: float, dice: random.Random, act: Any) -> None:
    """``act`` at random times, on average every so many seconds where it is quick."""
    await asyncio.sleep(dice.uniform(0, seconds))
    while True:
        began = time.monotonic()
        await act()
        await asyncio.sleep(max(0.0, dice.uniform(0.5, 1.5) * seconds - (time.monotonic() - began)))


async def _pan(
    connections: Connections,
    person: Person,
    scene: Scene,
    address: str,
    load: Load,
    dice: random.Random,
) -> None:
    z = dice.choices(range(len(scene.levels)), weights=[4**n for n in range(len(scene.levels))])[0]
    level = scene.levels[z]
    columns = -(-level["width"] // level["tile_width"])
    rows = -(-level["height"] // level["tile_height"])
    left, top = dice.randrange(columns), dice.randrange(rows)
    places = {((left + n % 5) % columns, (top + n // 5) % rows) for n in range(TILES_A_PAN)}

    async def tile(x: int, y: int) -> None:
        path = address.replace("{z}", str(z)).replace("{x}", str(x)).replace("{y}", str(y))
        began = time.perf_counter()
        load.note("tile", began, await connections.ask("GET", path, person.cookie))

    await asyncio.gather(*(tile(x, y) for x, y in places))


async def _save(
    connections: Connections, person: Person, scene: Scene, load: Load, dice: random.Random
) -> None:
    level = scene.levels[-1]
    x, y = dice.uniform(0, level["width"] - 400), dice.uniform(0, level["height"] - 400)
    ring = [[x, y], [x + 300, y], [x + 300, y + 300], [x, y + 300], [x, y]]
    body = {"canvas": scene.canvas, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    await _post(connections, person, "save", "/api/v1/rois/", body, load)


async def _search(
    connections: Connections, person: Person, scene: Scene, load: Load, dice: random.Random
) -> None:
    body = {"roi": str(dice.choice(scene.gallery)), "k": 20}
    await _post(connections, person, "search", "/api/v1/search/", body, load)


async def _post(
    connections: Connections, person: Person, what: str, path: str, body: object, load: Load
) -> None:
    began = time.perf_counter()
    answer = await connections.ask("POST", path, person.cookie, csrf=person.csrf, body=body)
    load.note(what, began, answer)


def _section(load: Load, usage: list[Usage], minutes: float, *, on_servers: bool) -> Section:
    wall = usage[-1].at - usage[0].at
    spent = {
        role: usage[-1].seconds.get(role, 0.0) - usage[0].seconds.get(role, 0.0) for role in ROLES
    }
    busy = usage[-1].machine_busy - usage[0].machine_busy
    own = processor_seconds(usage)
    others = busy - own - sum(spent.values())
    section = Section(
        ON_SERVERS if on_servers else TITLE,
        f"{USERS} people at once for {minutes:g} min, {CONNECTIONS} connections each: "
        f"{TILES_A_PAN} tiles every {PAN_EVERY_S:g} s, an ROI saved and a search among "
        f"{GALLERY:,} ROIs every {SAVE_EVERY_S:g} s each, while the worker embeds what "
        "is saved; the portal as `make serve` starts it, on "
        f"{'PostgreSQL and Redis, as they come' if on_servers else 'SQLite'}. "
        f"Processor time of the {os.cpu_count()} processors: "
        f"{spent['front'] / wall:.2f} for the fronts, {spent['web'] / wall:.2f} for the API "
        f"processes, {spent['worker'] / wall:.2f} for worker and reaper, {own / wall:.2f} for the "
        f"load generator, {others / wall:.2f} for everything else on the machine"
        f"{', the servers among it' if on_servers else ''}.",
    )
    for what, budget in BUDGETS.items():
        found = np.array(load.seconds[what] or [np.nan]) * 1e3
        p50, p95, p99 = np.percentile(found, (50, 95, 99))
        name = f"{what}: p95 of {len(found):,} (median {p50:.1f}, p99 {p99:.0f} ms)"
        section.rows.append(Row(name, float(p95), "ms", budget=f"p95 at most {budget} ms"))
    tiles = len(load.seconds["tile"]) / wall
    section.rows.append(Row("tiles answered", tiles, "tiles/s"))
    section.rows.append(Row("errors", len(load.errors), "answers", budget="0"))
    for role in ROLES:
        early, late = (_memory(part, role) for part in (usage[: len(usage) // 4 + 1], usage[-2:]))
        name = f"memory of the {role} processes at the end ({early:.0f} MiB in the first quarter)"
        section.rows.append(Row(name, late, "MiB", budget="" if role == "worker" else "flat"))
    for error in load.errors[:5]:
        sys.stderr.write(error + "\n")
    return section


def _memory(usage: list[Usage], role: str) -> float:
    return float(np.mean([one.mib.get(role, 0.0) for one in usage]))


def main() -> int:
    """Run it alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--servers", action="store_true", help="on PostgreSQL and Redis")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md as well")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.servers:
            section = mixed_load_on_servers(folder, minutes=asked.minutes)
        else:
            section = mixed_load(portal_open(folder), minutes=asked.minutes)
    if asked.write:
        report.replace(section, after=TITLE)
    print(f"{section.title}\n{section.note}")
    for row in section.rows:
        print(f"  {row.what:<72} {row.value:10.2f} {row.unit:<8} {row.budget}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

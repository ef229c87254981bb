"""People at browsers: each pans, and now and then saves or searches."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.bench.portal import BenchPortal
from tests.bench.requests import Answer, Connections

USERS, CONNECTIONS = 50, 6  # a browser opens six connections to a host
PAN_EVERY_S, TILES_A_PAN = 1.0, 10
SAVE_EVERY_S, SEARCH_EVERY_S = 10.0, 10.0
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Person:
    """A signed-in user and the headers of their browser."""

    cookie: str
    csrf: str


@dataclass(slots=True)
class Load:
    """Durations of the users' requests, and their errors."""

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
    """Objects that can be requested."""

    canvas: str
    tile_url: str
    levels: list[dict[str, int]]
    gallery: list[uuid.UUID]


async def scene_of(
    port: int, portal: BenchPortal, person: Person, gallery: list[uuid.UUID]
) -> Scene:
    canvas = str(portal.canvas.pk)
    connections = Connections(HOST, port, 1)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            answer = await connections.ask("GET", f"/api/v1/canvases/{canvas}/", person.cookie)
            if answer.status == 200:
                data = json.loads(answer.body)
                levels = sorted(data["levels"], key=lambda level: level["width"])
                return Scene(canvas, data["tile_url"], levels, gallery)
        await asyncio.sleep(0.2)  # a poll: nothing reports that the portal answers
    raise TimeoutError("the portal does not answer")


async def sit(port: int, person: Person, scene: Scene, load: Load, dice: random.Random) -> None:
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

"""Delay until 50 people on one canvas receive an edit: ``python -m tests.bench.live_updates``.

Each person polls as the page does (``static/src/viewer/rois/store/live_updates.ts``, whose pauses
are read from it): changes, then changed ROIs that did not come with them, and a heartbeat. After an
idle phase one more person saves. An edit counts as delivered when the ROI itself has arrived. The
processor time of the portal's web processes is reported with the delays:
it hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from tests.bench import report
from tests.bench.measure import Row, Section, constant_of
from tests.bench.mixed.run import ROOT, _person, _serving
from tests.bench.mixed.users import HOST, Person, scene_of
from tests.bench.portal import BenchPortal, portal_open
from tests.bench.processes import Usage, usage_of
from tests.bench.requests import Connections
from tests.chaos.clusters import Postgres, Redis
from tests.polling import wait_until_async
from tests.ports import free_port

VIEWERS = 50
FIRST = 1_000  # number of a person: the mixed load's may be there already
SAVES, SAVE_EVERY_S = 30, 2.0
WARM_UP_S = 15.0  # all pages have polled, and each process has answered
IDLE_S = 20.0  # 50 pages are open, and nobody edits
LAST_WAIT_S = 10.0  # an edit not delivered by then is an error
TITLE = "Others' edits"
ON_SERVERS = "Others' edits on PostgreSQL and Redis"
PAGE = ROOT / "static/src/viewer/rois/store/live_updates.ts"


@dataclass(slots=True)
class Seen:
    """Times at which edits were sent, and their delay to each viewer."""

    sent: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


async def watch(port: int, person: Person, canvas: str, seen: Seen, dice: random.Random) -> None:
    """One page that is open."""
    connections = Connections(HOST, port, 2)
    poll, sign = constant_of(PAGE, "POLL_MS") / 1e3, constant_of(PAGE, "HEARTBEAT_MS") / 1e3
    tab, cursor, etag, known = uuid.uuid4(), "", "", set[str]()
    url, sent_at = f"/api/v1/canvases/{canvas}/live/", 0.0
    await asyncio.sleep(dice.uniform(0, WARM_UP_S / 2))
    while True:
        if time.monotonic() - sent_at > sign:
            sent_at = time.monotonic()
            body = {"tab": str(tab), "view": [0, 0, 100, 100], "roi": None}
            await connections.ask("PUT", url, person.cookie, csrf=person.csrf, body=body)
        since = f"&since={quote(cursor)}" if cursor else ""
        began = time.perf_counter()
        by_itself = ["X-Unattended: 1", f"If-None-Match: {etag}"]
        answer = await connections.ask(
            "GET", f"{url}?tab={tab}{since}", person.cookie, more=by_itself
        )
        seen.asked.append(time.perf_counter() - began)
        if answer.status == 200:
            now = json.loads(answer.body)
            cursor, etag = now["cursor"], answer.etag
            known |= await _new_rois(connections, person, canvas, now["changed"], known, seen)
        elif answer.status != 304:
            seen.errors.append(f"{answer.status} {answer.body[:120]!r}")
        await asyncio.sleep(poll)


async def _new_rois(
    connections: Connections,
    person: Person,
    canvas: str,
    changed: list[dict[str, Any]],
    known: set[str],
    seen: Seen,
) -> set[str]:
    """ROIs that are new to a page; those that did not come along are requested."""
    news = {change["id"]: change["roi"] for change in changed if change["id"] not in known}
    missing = [number for number, roi in news.items() if roi is None]
    arrived = news.keys() - set(missing)
    step = constant_of(PAGE, "IDS_PER_REQUEST")
    for start in range(0, len(missing), step):
        path = f"/api/v1/rois/?canvas={canvas}&ids={','.join(missing[start : start + step])}"
        rois = json.loads((await connections.ask("GET", path, person.cookie)).body)
        arrived |= {roi["id"] for roi in rois["results"]}
    at = time.perf_counter()
    seen.seconds += [at - seen.sent[number] for number in arrived & seen.sent.keys()]
    return arrived


async def edit(port: int, person: Person, canvas: str, seen: Seen, dice: random.Random) -> None:
    """Saves an ROI now and then; its id is chosen here, as the page does."""
    connections = Connections(HOST, port, 1)
    for _ in range(SAVES):
        x, y = dice.uniform(0, 1000), dice.uniform(0, 1000)
        ring = [[x, y], [x + 300, y], [x + 300, y + 300], [x, y + 300], [x, y]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        number = str(uuid.uuid4())
        body = {"id": number, "canvas": canvas, "geometry": geometry}
        seen.sent[number] = time.perf_counter()
        cookie, csrf = person.cookie, person.csrf
        answer = await connections.ask("POST", "/api/v1/rois/", cookie, csrf=csrf, body=body)
        if answer.status != 201:
            seen.errors.append(f"save: {answer.status} {answer.body[:200]!r}")
        await asyncio.sleep(SAVE_EVERY_S * dice.uniform(0.5, 1.5))


async def _run(
    port: int, pid: int, portal: BenchPortal, people: list[Person]
) -> tuple[Seen, list[Usage]]:
    seen, canvas = Seen(), str(portal.canvas.pk)
    await scene_of(port, portal, people[0], [])
    viewers = [
        asyncio.create_task(watch(port, person, canvas, seen, random.Random(number)))
        for number, person in enumerate(people[1:])
    ]
    await asyncio.sleep(WARM_UP_S)
    usage = [usage_of(pid)]
    await asyncio.sleep(IDLE_S)
    usage.append(usage_of(pid))
    await edit(port, people[0], canvas, seen, random.Random(99))
    await wait_until_async(lambda: len(seen.seconds) >= SAVES * len(viewers), within_s=LAST_WAIT_S)
    usage.append(usage_of(pid))
    for task in viewers:
        task.cancel()
    for outcome in await asyncio.gather(*viewers, return_exceptions=True):
        if isinstance(outcome, Exception):
            seen.errors.append(repr(outcome))
    return seen, usage


def _web_load(first: Usage, last: Usage) -> float:
    """Processor seconds per second of the portal's web processes."""
    return (last.seconds["web"] - first.seconds["web"]) / (last.at - first.at)


def others_edits(portal: BenchPortal) -> Section:
    """50 people look on while one saves: how long until each of them has the ROI."""
    people = [_person(portal, FIRST + number) for number in range(VIEWERS + 1)]
    port = free_port()
    with _serving(portal, port) as serve:
        seen, usage = asyncio.run(_run(port, serve.pid, portal, people))
    on_servers = "TESSERA_BROKER_URL" in portal.env
    idle, busy = _web_load(usage[0], usage[1]), _web_load(usage[1], usage[2])
    section = Section(
        ON_SERVERS if on_servers else TITLE,
        f"{VIEWERS} people have one canvas open and another one saves an ROI every "
        f"{SAVE_EVERY_S:g} s: from the moment the save is sent until each of them has the ROI, "
        f"polled as by the page; the portal as `make serve` starts it, on "
        f"{'PostgreSQL and Redis, default settings' if on_servers else 'SQLite'}. Processor time "
        "is that of the portal's web processes, without the embedding of what is saved.",
    )
    result, request_s = np.array(seen.seconds or [np.nan]), np.array(seen.asked or [np.nan])
    p50, p95, p99 = np.percentile(result, (50, 95, 99))
    name = f"delivered, p95 of {len(result):,} (median {p50:.2f}, p99 {p99:.2f} s)"
    section.rows.append(Row(name, float(p95), "s", budget="p95 at most 2 s"))
    missing = len(seen.sent) * VIEWERS - len(seen.seconds)
    section.rows.append(Row("not delivered", missing, "edits", budget="0"))
    name = f"a poll, p95 of {len(request_s):,} (median {np.median(request_s) * 1e3:.0f} ms)"
    section.rows.append(Row(name, float(np.percentile(request_s, 95)) * 1e3, "ms"))
    name = "processor time a second without edits"
    section.rows.append(Row(name, idle * 1e3, "ms"))
    name = "processor time of an edit, with the polls until the next one"
    section.rows.append(Row(name, busy * (usage[2].at - usage[1].at) / SAVES * 1e3, "ms"))
    section.rows.append(Row("errors", len(seen.errors), "answers", budget="0"))
    for error in seen.errors[:5]:
        sys.stderr.write(error + "\n")
    return section


def main() -> None:
    """Run this measurement only."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", action="store_true", help="on PostgreSQL and Redis")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.servers:
            folder.chmod(0o755)  # PostgreSQL runs as another user below root
            postgres, redis = Postgres(folder), Redis(folder)
            try:
                postgres.wait()
                redis.wait()
                servers = {"TESSERA_DATABASE_URL": postgres.url, "TESSERA_BROKER_URL": redis.url}
                section = others_edits(portal_open(folder, servers))
            finally:
                postgres.kill()
                redis.kill()
        else:
            section = others_edits(portal_open(folder))
    print(section.note)
    for row in section.rows:
        print(f"  {row.what:<60} {row.value:10.2f} {row.unit:<8} {row.budget}")
    if options.write:
        report.replace(
            section, after="Memory under the mixed load" if not options.servers else TITLE
        )


if __name__ == "__main__":
    main()

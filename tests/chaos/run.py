"""One run: people work, the monkey kills, everything settles, the books are checked."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.chaos.monkey import Monkey
from tests.chaos.people import Caller, Journal, Person
from tests.chaos.portal import Portal
from tests.chaos.verdict import breaches

BETWEEN_S = (3.0, 9.0)  # from one mischief to the next
SETTLE_S = 420.0  # for all queued work afterwards, on a slow machine with others on it


def chaos(folder: Path, *, minutes: float, seed: int) -> dict[str, Any]:
    """Run and report."""
    portal = Portal(folder)
    try:
        return _run(portal, minutes=minutes, seed=seed)
    finally:
        portal.stop()


def _run(portal: Portal, *, minutes: float, seed: int) -> dict[str, Any]:
    who = portal.control("prepare")
    portal.start()
    portal.wait_until_ready(120)
    journal, stop = Journal(), threading.Event()
    threads = _people(portal, who, journal, stop, seed)
    monkey = Monkey(portal, random.Random(seed))
    ends = time.monotonic() + 60 * minutes
    while time.monotonic() < ends:
        time.sleep(monkey.rng.uniform(*BETWEEN_S))
        portal.keep()
        monkey.act()
    monkey.rest()
    stop.set()
    for thread in threads:
        thread.join(timeout=90)
    portal.wait_until_ready(120)
    began = time.monotonic()
    _settle(portal)
    retried = portal.control("retry")
    facts = _settle(portal)
    return {
        "minutes": minutes,
        "seed": seed,
        "did": dict(monkey.did),
        "events": monkey.log,
        "serve_starts": portal.starts,
        "acknowledged": {
            "uploads": len(journal.slides) + len(journal.videos),
            "rois": len(journal.edits),
            "versions": sum(map(len, journal.edits.values())),
            "mosaics": len(journal.mosaics),
        },
        "answers": dict(sorted(journal.answers.items())),
        "slowest_answer_s": round(journal.slowest_s, 1),
        "jobs": dict(Counter(f"{job['kind']} {job['state']}" for job in facts["jobs"])),
        "attempts": dict(Counter(str(job["attempts"]) for job in facts["jobs"])),
        "failed_with": dict(Counter(job["error_code"] for job in facts["jobs"])),
        "tried_again_by_hand": retried,
        "settled_after_s": round(time.monotonic() - began),
        "breaches": breaches(journal, facts),
    }


def _people(
    portal: Portal, who: dict[str, str], journal: Journal, stop: threading.Event, seed: int
) -> list[threading.Thread]:
    call = Caller(portal.url, who["token"], journal)
    threads = []
    habits = (("upload", 4.0), ("draw", 5.0), ("draw", 5.0), ("search", 2.0), ("stitch", 20.0))
    for number, (habit, pause_s) in enumerate(habits):
        person = Person(call, who["case"], random.Random(seed * 100 + number), stop)
        thread = threading.Thread(
            target=person.run, args=(getattr(person, habit), pause_s), daemon=True, name=habit
        )
        thread.start()
        threads.append(thread)
    return threads


def _settle(portal: Portal) -> dict[str, Any]:
    """Wait until no job moves; the facts, whether or not that came."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        portal.keep()
        facts: dict[str, Any] = portal.control("facts")
        moving = [job for job in facts["jobs"] if job["state"] in ("queued", "running")]
        if not moving or time.monotonic() > deadline:
            return facts
        time.sleep(3)

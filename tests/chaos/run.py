"""One run: people work, the monkey kills, everything settles, the books are checked."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos.http_calls import Caller, Journal
from tests.chaos.monkey import Monkey
from tests.chaos.portal import Portal
from tests.chaos.users import Person
from tests.chaos.verdict import breaches
from tests.polling import wait_until

BETWEEN_S = (3.0, 9.0)  # from one mischief to the next
BRIEF_S = (2.0, 4.0)  # in a run of less than two minutes
HABITS = (
    *(("upload", 4.0), ("draw", 5.0), ("draw", 5.0), ("search", 2.0)),
    *(("stitch", 20.0), ("tidy", 6.0), ("share", 6.0)),
)  # and how long each pauses, seconds on average
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
    began = time.monotonic()
    heads: list[str] = []
    while (passed := time.monotonic() - began) < 60 * minutes:
        if not heads and passed > 30 * minutes:
            heads = portal.heads()
        # the interval between two faults
        time.sleep(monkey.rng.uniform(*(BETWEEN_S if minutes >= 2 else BRIEF_S)))
        portal.keep()
        monkey.act()
    monkey.rest()
    stop.set()
    for thread in threads:
        thread.join(timeout=90)
    portal.wait_until_ready(120)
    began = time.monotonic()
    _settle(portal)
    settled_s = time.monotonic() - began
    retried = portal.control("retry")
    if retried:
        _settle(portal)
    facts: dict[str, Any] = portal.control("facts")
    facts["audit"] = portal.audit(heads)
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
            "deleted_rois": len(journal.deleted),
            "into_the_trash": len(journal.trashed),
            "shares": len(journal.shares),
        },
        "entries_of_the_audit_log": facts["entries"],
        "heads_kept": len(heads),
        "answers": dict(sorted(journal.answers.items())),
        "slowest_answer_s": round(journal.slowest_s, 1),
        "jobs": dict(Counter(f"{job['kind']} {job['state']}" for job in facts["jobs"])),
        "attempts": dict(Counter(str(job["attempts"]) for job in facts["jobs"])),
        "failed_with": dict(Counter(job["error_code"] for job in facts["jobs"])),
        "tried_again_by_hand": retried,
        "settled_after_s": round(settled_s),
        "errors": portal.errors() if any(key.endswith(" 500") for key in journal.answers) else "",
        "breaches": breaches(journal, facts),
    }


def _people(
    portal: Portal, who: dict[str, str], journal: Journal, stop: threading.Event, seed: int
) -> list[threading.Thread]:
    call = Caller(portal.url, who["token"], journal)
    threads = []
    guest = Caller(portal.url, who["guest"], journal)
    for number, (habit, pause_s) in enumerate(HABITS):
        person = Person(call, guest, who["case"], random.Random(seed * 100 + number), stop)
        thread = threading.Thread(
            target=person.run, args=(getattr(person, habit), pause_s), daemon=True, name=habit
        )
        thread.start()
        threads.append(thread)
    return threads


def _settle(portal: Portal) -> None:
    """Wait until no job is queued or running; ``breaches`` reports those left at the deadline."""

    def has_settled() -> bool:
        portal.keep()
        return not portal.moving()

    with suppress(TimeoutError):
        wait_until(has_settled, "the end of all jobs", within_s=SETTLE_S, every_s=1)

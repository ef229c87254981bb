"""A minute of chaos: nothing acknowledged is lost, nothing is doubled, nothing is stuck.

``TESSERA_CHAOS_SEED`` makes it another order of mischief.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import services
from tests.chaos.http_calls import Journal, NoAnswer
from tests.chaos.run import chaos
from tests.chaos.users import Person
from tests.chaos.verdict import breaches


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the user of PostgreSQL may enter, as pytest's own may not be."""
    folder = Path(tempfile.mkdtemp(prefix="tessera-chaos-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.endurance
@pytest.mark.services
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_record_is_lost_doubled_or_stuck_after_chaos(open_folder: Path) -> None:
    seed = int(os.environ.get("TESSERA_CHAOS_SEED", "3"))
    try:
        report = chaos(open_folder, minutes=1, seed=seed)
    except FileNotFoundError as error:
        services.missing(error)
        raise
    text = json.dumps(report, indent=2)
    assert report["breaches"] == [], text
    assert len(report["did"]) >= 4, text
    min_counts = {"uploads": 2, "rois": 1, "shares": 1}
    assert all(report["acknowledged"][name] >= count for name, count in min_counts.items()), text


def _facts() -> tuple[Journal, dict[str, list[dict[str, object]]]]:
    """One of each, all well."""
    journal = Journal(
        slides={"s": "a"},
        trashed={"s": False},
        edits={"r": {1: "r-1", 2: "r-2", 3: "r-2", 4: "r-2"}},
        deleted={"r": False},
        mosaics=["m"],
        shares={"x": "ended"},
    )
    facts: dict[str, list[dict[str, object]]] = {
        "jobs": [
            {
                "id": "j",
                "kind": "k",
                "state": "succeeded",
                "error_code": "",
                "message": "",
                "ended": 1,
            }
        ],
        "items": [
            {
                **{"id": "s", "sha256": "a", "bytes": "a", "state": "ready", "canvas": True},
                **{"error": "", "in_trash": False},
                "noted": {"item.received": 1, "trash.put": 1, "trash.restored": 1},
            }
        ],
        "rois": [
            {
                "id": "r",
                "version": 4,
                "versions": [1, 2, 3, 4],
                "actions": ["create", "update", "delete", "restore"],
                "names": {"1": "r-1", "2": "r-2", "3": "r-2", "4": "r-2"},
                "noted": [1, 1, 1, 1],
                "current_embeddings": 1,
                "deleted": False,
                "in_trash": False,
            }
        ],
        "shares": [
            {
                "id": "x",
                "state": "ended",
                "noted": {"share.offered": 2, "share.accepted": 2, "share.ended": 2},
            }
        ],
        "audit": [],
        "mosaics": [{"id": "m", "state": "ready", "error": "", "components": 1, "indexes": [0]}],
    }
    return journal, facts


def test_books_that_are_right_have_no_breach() -> None:
    assert breaches(*_facts()) == []


_NAMES = {"1": "r-1", "2": "r-2", "3": "r-2", "4": "r-2"}


@pytest.mark.parametrize(
    ("part", "changes", "breach_text"),
    [
        ("jobs", {"state": "running"}, "stuck: job k is running"),
        ("jobs", {"ended": 2}, "ended 2 times"),
        ("jobs", {"state": "failed", "error_code": "internal"}, "failed: internal"),
        ("items", {"id": "other"}, "lost: acknowledged upload s"),
        ("items", {"bytes": "missing"}, "lost: bytes of s"),
        ("items", {"state": "failed"}, "stuck: s is failed"),
        ("rois", {"id": "other"}, "lost: acknowledged ROI r"),
        ("items", {"in_trash": True}, "lost: s in the trash"),
        (
            "items",
            {"noted": {"item.received": 1, "trash.put": 1, "trash.restored": 0}},
            "audit: s in",
        ),
        (
            "items",
            {"noted": {"item.received": 2, "trash.put": 0, "trash.restored": 0}},
            "received 2",
        ),
        ("rois", {"names": _NAMES | {"2": "else"}}, "lost: ROI r version 2"),
        ("rois", {"names": _NAMES | {"1": "r-2"}}, "doubled: an edit of ROI r"),
        ("rois", {"actions": ["create", "update", "delete", "delete"]}, "doubled: an edit of"),
        ("rois", {"deleted": True}, "lost: ROI r deleted"),
        ("rois", {"noted": [1, 1, 0, 1]}, "audit: versions of ROI r"),
        ("rois", {"current_embeddings": 0}, "has 0 current embeddings"),
        ("rois", {"versions": [1]}, "has versions [1]"),
        ("rois", {"current_embeddings": 2}, "has 2 current embeddings"),
        ("mosaics", {"id": "other"}, "lost: acknowledged mosaic m"),
        ("mosaics", {"state": "preparing"}, "stuck: mosaic m"),
        ("shares", {"id": "other"}, "lost: acknowledged share x"),
        ("shares", {"state": "accepted"}, "lost: share x is accepted"),
        ("shares", {"noted": {"share.offered": 2, "share.accepted": 2, "share.ended": 1}}, "audit"),
        ("mosaics", {"indexes": [0, 0], "components": 2}, "doubled: components"),
    ],
)
def test_each_breach_is_seen(part: str, changes: dict[str, object], breach_text: str) -> None:
    journal, facts = _facts()
    facts[part][0] |= changes
    assert any(breach_text in breach for breach in breaches(journal, facts))


def test_an_upload_stored_twice_is_detected() -> None:
    journal, facts = _facts()
    facts["items"].append(facts["items"][0] | {"id": "s2"})
    assert breaches(journal, facts) == ["doubled: 2 items of the bytes a"]


def test_a_trashed_roi_needs_no_vector_and_is_not_lost() -> None:
    journal, facts = _facts()
    facts["rois"][0] |= {"in_trash": True, "current_embeddings": 0}
    assert breaches(journal, facts) == []


def test_an_unconfirmed_write_may_be_present_or_absent() -> None:
    journal, facts = _facts()
    journal.trashed["s"] = journal.deleted["r"] = None
    journal.shares["x"] = "accepted ended"
    assert breaches(journal, facts) == []


def test_an_answer_500_is_a_breach() -> None:
    journal, facts = _facts()
    journal.answers.update(["GET /slides/ 503", "POST /search/ 500"])
    assert breaches(journal, facts) == ["a bug: POST /search/ 500"]


@pytest.mark.parametrize("where", ["audit", "shown", "faults"])
def test_a_broken_chain_or_a_look_that_was_not_shared_is_a_breach(where: str) -> None:
    journal, facts = _facts()
    records: list[object] = facts["audit"] if where == "audit" else getattr(journal, where)  # type: ignore[assignment]
    records.append("something")
    assert breaches(journal, facts) == ["something"]


@dataclass
class _Answers:
    """Stub of a caller: returns these statuses for calls of the share, in turn."""

    journal: Journal
    left: list[int]

    def __call__(self, method: str, path: str, *_: object, **__: object) -> tuple[int, object]:
        if path.endswith("/shares/"):
            return 201, {"id": "x"}
        if method == "GET":
            return 0, None
        if not (status := self.left.pop(0)):
            raise NoAnswer
        return status, None


@pytest.mark.parametrize(
    ("answers", "may_be"),
    [([200, 200], "ended"), ([200, 0], "accepted ended"), ([0], "offered accepted")],
)
def test_a_call_without_an_answer_leaves_both_states_open(answers: list[int], may_be: str) -> None:
    call = _Answers(Journal(), answers)
    over = threading.Event()
    over.set()  # a call is not made again
    Person(call, call, "case", random.Random(0), over).share()  # type: ignore[arg-type]
    assert call.journal.shares == {"x": may_be}

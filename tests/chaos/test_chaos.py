"""Two minutes of chaos: nothing acknowledged is lost, nothing is doubled, nothing is stuck."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.chaos.people import Journal
from tests.chaos.run import chaos
from tests.chaos.verdict import breaches


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the user of PostgreSQL may enter, as pytest's own may not be."""
    folder = Path(tempfile.mkdtemp(prefix="tessera-chaos-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("TESSERA_CHAOS" not in os.environ, reason="TESSERA_CHAOS=1 runs it: minutes")
def test_nothing_is_lost_doubled_or_stuck_after_two_minutes_of_chaos(open_folder: Path) -> None:
    try:
        report = chaos(open_folder, minutes=2, seed=3)
    except FileNotFoundError as error:
        services.missing(error)
        raise
    text = json.dumps(report, indent=2)
    assert report["breaches"] == [], text
    assert sum(report["did"].values()) >= 10, text
    assert report["acknowledged"]["uploads"] >= 5 and report["acknowledged"]["rois"] >= 3, text


def _facts() -> tuple[Journal, dict[str, list[dict[str, object]]]]:
    """One of each, all well."""
    journal = Journal(
        slides={"s": "a"}, edits={"r": {1: "r-1", 2: "r-2"}}, mosaics=["m"], videos={}
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
            {"id": "s", "sha256": "a", "bytes": "a", "state": "ready", "canvas": True, "error": ""}
        ],
        "rois": [
            {
                "id": "r",
                "version": 2,
                "versions": [1, 2],
                "names": {"1": "r-1", "2": "r-2"},
                "current_embeddings": 1,
            }
        ],
        "mosaics": [{"id": "m", "state": "ready", "error": "", "components": 1, "indexes": [0]}],
    }
    return journal, facts


def test_books_that_are_right_have_no_breach() -> None:
    assert breaches(*_facts()) == []


@pytest.mark.parametrize(
    ("part", "changes", "said"),
    [
        ("jobs", {"state": "running"}, "stuck: job k is running"),
        ("jobs", {"ended": 2}, "ended 2 times"),
        ("jobs", {"state": "failed", "error_code": "internal"}, "failed: internal"),
        ("items", {"id": "other"}, "lost: acknowledged upload s"),
        ("items", {"bytes": "missing"}, "lost: bytes of s"),
        ("items", {"state": "failed"}, "stuck: s is failed"),
        ("rois", {"id": "other"}, "lost: acknowledged ROI r"),
        ("rois", {"names": {"1": "r-1", "2": "else"}}, "lost: ROI r version 2"),
        ("rois", {"names": {"1": "r-2", "2": "r-2"}}, "doubled: an edit of ROI r"),
        ("rois", {"versions": [1]}, "has versions [1]"),
        ("rois", {"current_embeddings": 2}, "has 2 current embeddings"),
        ("mosaics", {"id": "other"}, "lost: acknowledged mosaic m"),
        ("mosaics", {"state": "preparing"}, "stuck: mosaic m"),
        ("mosaics", {"indexes": [0, 0], "components": 2}, "doubled: components"),
    ],
)
def test_each_breach_is_seen(part: str, changes: dict[str, object], said: str) -> None:
    journal, facts = _facts()
    facts[part][0] |= changes
    assert any(said in breach for breach in breaches(journal, facts))


def test_an_upload_kept_twice_is_seen() -> None:
    journal, facts = _facts()
    facts["items"].append(facts["items"][0] | {"id": "s2"})
    assert breaches(journal, facts) == ["doubled: 2 items of the bytes a"]

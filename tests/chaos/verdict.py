"""The books against what was acknowledged."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.chaos.http_calls import Journal


def breaches(journal: Journal, facts: dict[str, Any]) -> list[str]:
    """List lost, duplicated and stuck objects; empty if there are none."""
    return [
        *_jobs(facts["jobs"]),
        *_items(journal, facts["items"]),
        *_rois(journal, facts["rois"]),
        *_mosaics(journal.mosaics, facts["mosaics"]),
        *_shares(journal.shares, facts["shares"]),
        *journal.shown,
        *(f"a bug: {answer}" for answer in journal.answers if answer.endswith(" 500")),
        *facts["audit"],
        *journal.faults,
    ]


def _jobs(jobs: list[dict[str, Any]]) -> list[str]:
    problems = [f"stuck: job {job['kind']} is {job['state']}" for job in jobs if _moves(job)]
    problems += [
        f"job {job['kind']} {job['id']} ended {job['ended']} times"
        for job in jobs
        if not _moves(job) and job["ended"] != 1
    ]
    # What a kill may do to a job, or a full disk; anything else is a defect.
    excused = {"worker-lost", "attempts-spent", "storage-full"}
    return problems + [
        f"job {job['kind']} failed: {job['error_code']} {job['message']}"
        for job in jobs
        if job["state"] == "failed" and job["error_code"] not in excused
    ]


def _moves(job: dict[str, Any]) -> bool:
    return job["state"] in ("queued", "running")


def _items(journal: Journal, items: list[dict[str, Any]]) -> list[str]:
    sent = journal.slides | journal.videos
    known = {item["id"]: item for item in items}
    problems = [f"lost: acknowledged upload {key}" for key in sent if key not in known]
    for key, sha256 in sent.items():
        item = known.get(key)
        if item is None:
            continue
        if item["sha256"] != sha256 or item["bytes"] != sha256:
            problems.append(f"lost: bytes of {key}: sent {sha256}, stored {item['bytes']}")
        if item["state"] != "ready" or not item["canvas"]:
            problems.append(f"stuck: {key} is {item['state']} ({item['error']})")
        if journal.trashed.get(key, False) not in (None, item["in_trash"]):
            problems.append(f"lost: {key} in the trash: {item['in_trash']}, told {journal.trashed}")
    for item in items:
        noted = item["noted"]
        if noted["item.received"] != 1:
            problems.append(f"audit: {item['id']} received {noted['item.received']} times")
        if noted["trash.put"] - noted["trash.restored"] != item["in_trash"]:
            problems.append(f"audit: {item['id']} in the trash: {item['in_trash']}, noted {noted}")
    twice = Counter(item["sha256"] for item in items)
    return problems + [
        f"doubled: {count} items of the bytes {key}" for key, count in twice.items() if count > 1
    ]


def _rois(journal: Journal, rois: list[dict[str, Any]]) -> list[str]:
    known = {roi["id"]: roi for roi in rois}
    problems = []
    for key, versions in journal.edits.items():
        roi = known.get(key)
        if roi is None:
            problems.append(f"lost: acknowledged ROI {key}")
            continue
        for version, name in versions.items():
            if roi["names"].get(str(version)) != name:
                problems.append(
                    f"lost: ROI {key} version {version}: {roi['names'].get(str(version))}"
                )
        if journal.deleted.get(key, False) not in (None, roi["deleted"]):
            problems.append(f"lost: ROI {key} deleted: {roi['deleted']}")
    for roi in rois:
        if roi["versions"] != list(range(1, roi["version"] + 1)):
            problems.append(f"ROI {roi['id']} at {roi['version']} has versions {roi['versions']}")
        problems += _doubled(roi)
        # A region in the trash is embedded when it is restored; a deleted one has no vector.
        max_count = 0 if roi["deleted"] else 1
        min_count = 0 if roi["in_trash"] else max_count
        if not min_count <= roi["current_embeddings"] <= max_count:
            problems.append(f"ROI {roi['id']} has {roi['current_embeddings']} current embeddings")
        if any(count != 1 for count in roi["noted"]):
            problems.append(f"audit: versions of ROI {roi['id']} are noted {roi['noted']} times")
    return problems


def _doubled(roi: dict[str, Any]) -> list[str]:
    """Each edit has a name of its own; deletion and restoring keep it, and follow one another."""
    acts = list(zip(roi["actions"], roi["names"].values(), strict=True))
    edits = [name for action, name in acts if action not in ("delete", "restore")]
    swaps = [action for action, _ in acts if action in ("delete", "restore")]
    if len(set(edits)) == len(edits) and swaps == ["delete", "restore", "delete"][: len(swaps)]:
        return []
    return [f"doubled: an edit of ROI {roi['id']}: {acts}"]


def _shares(acknowledged: dict[str, str], shares: list[dict[str, Any]]) -> list[str]:
    known = {share["id"]: share for share in shares}
    problems = [f"lost: acknowledged share {key}" for key in acknowledged if key not in known]
    for key, states in acknowledged.items():
        if key in known and known[key]["state"] not in states.split():
            problems.append(f"lost: share {key} is {known[key]['state']}, told {states}")
    open_ones = [share["id"] for share in shares if share["state"] != "ended"]
    if len(open_ones) > 1:
        problems.append(f"doubled: open shares {open_ones}")
    for share in shares:  # to each of the two labs
        wanted = ["share.offered"]
        wanted += {"accepted": ["share.accepted"], "ended": ["share.ended"]}.get(share["state"], [])
        counts = share["noted"]
        if any(counts[name] != 2 for name in wanted) or counts["share.accepted"] not in (0, 2):
            problems.append(f"audit: share {share['id']} is {share['state']}, noted {counts}")
    return problems


def _mosaics(acknowledged: list[str], mosaics: list[dict[str, Any]]) -> list[str]:
    known = {mosaic["id"]: mosaic for mosaic in mosaics}
    problems = [f"lost: acknowledged mosaic {key}" for key in acknowledged if key not in known]
    for key in acknowledged:
        mosaic = known.get(key)
        if mosaic is None:
            continue
        if mosaic["state"] != "ready":
            problems.append(f"stuck: mosaic {key} is {mosaic['state']} ({mosaic['error']})")
        if mosaic["indexes"] != list(range(mosaic["components"])):
            problems.append(f"doubled: components of mosaic {key}: {mosaic['indexes']}")
    return problems

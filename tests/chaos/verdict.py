"""The books against what was acknowledged."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.chaos.people import Journal


def breaches(journal: Journal, facts: dict[str, Any]) -> list[str]:
    """What was lost, doubled or is stuck; empty where all is well."""
    return [
        *_jobs(facts["jobs"]),
        *_items(journal.slides | journal.videos, facts["items"]),
        *_rois(journal.edits, facts["rois"]),
        *_mosaics(journal.mosaics, facts["mosaics"]),
    ]


def _jobs(jobs: list[dict[str, Any]]) -> list[str]:
    found = [f"stuck: job {job['kind']} is {job['state']}" for job in jobs if _moves(job)]
    found += [
        f"job {job['kind']} {job['id']} ended {job['ended']} times"
        for job in jobs
        if not _moves(job) and job["ended"] != 1
    ]
    # What a kill may do to a job, or a full disk; anything else is a defect.
    excused = {"worker-lost", "attempts-spent", "storage-full"}
    return found + [
        f"job {job['kind']} failed: {job['error_code']} {job['message']}"
        for job in jobs
        if job["state"] == "failed" and job["error_code"] not in excused
    ]


def _moves(job: dict[str, Any]) -> bool:
    return job["state"] in ("queued", "running")


def _items(sent: dict[str, str], items: list[dict[str, Any]]) -> list[str]:
    known = {item["id"]: item for item in items}
    found = [f"lost: acknowledged upload {key}" for key in sent if key not in known]
    for key, sha256 in sent.items():
        item = known.get(key)
        if item is None:
            continue
        if item["sha256"] != sha256 or item["bytes"] != sha256:
            found.append(f"lost: bytes of {key}: sent {sha256}, stored {item['bytes']}")
        if item["state"] != "ready" or not item["canvas"]:
            found.append(f"stuck: {key} is {item['state']} ({item['error']})")
    twice = Counter(item["sha256"] for item in items)
    return found + [
        f"doubled: {count} items of the bytes {key}" for key, count in twice.items() if count > 1
    ]


def _rois(edits: dict[str, dict[int, str]], rois: list[dict[str, Any]]) -> list[str]:
    known = {roi["id"]: roi for roi in rois}
    found = []
    for key, versions in edits.items():
        roi = known.get(key)
        if roi is None:
            found.append(f"lost: acknowledged ROI {key}")
            continue
        for version, name in versions.items():
            if roi["names"].get(str(version)) != name:
                found.append(f"lost: ROI {key} version {version}: {roi['names'].get(str(version))}")
    for roi in rois:
        if roi["versions"] != list(range(1, roi["version"] + 1)):
            found.append(f"ROI {roi['id']} at {roi['version']} has versions {roi['versions']}")
        if len(set(roi["names"].values())) != len(roi["names"]):
            found.append(f"doubled: an edit of ROI {roi['id']}: {roi['names']}")
        if roi["current_embeddings"] != 1:
            found.append(f"ROI {roi['id']} has {roi['current_embeddings']} current embeddings")
    return found


def _mosaics(asked: list[str], mosaics: list[dict[str, Any]]) -> list[str]:
    known = {mosaic["id"]: mosaic for mosaic in mosaics}
    found = [f"lost: acknowledged mosaic {key}" for key in asked if key not in known]
    for key in asked:
        mosaic = known.get(key)
        if mosaic is None:
            continue
        if mosaic["state"] != "ready":
            found.append(f"stuck: mosaic {key} is {mosaic['state']} ({mosaic['error']})")
        if mosaic["indexes"] != list(range(mosaic["components"])):
            found.append(f"doubled: components of mosaic {key}: {mosaic['indexes']}")
    return found

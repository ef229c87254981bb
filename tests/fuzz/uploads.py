"""Damaged and hostile files through a portal of its own, over REST, as a person sends them.

``make fuzz UPLOADS=1 MINUTES=60``. A finding is an answer of 500 or more, none at all, a worker
that was lost, a job that does not end, a process that grows without bound, or a file whose
refusal gives no reason.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.calling import Caller, Journal, NoAnswer
from tests.chaos.portal import Portal, children
from tests.fuzz.damage import damaged
from tests.fuzz.documents import documents
from tests.fuzz.run import Outcome
from tests.fuzz.samples import samples

READY_S = 180
JOB_S = 300  # of a file of less than a megabyte; the sandbox stops it long before
POLL_S = 0.2
STORAGE_BYTES = 2 * 2**30  # the run ends there: what is deleted stays in the bin
PROCESS_BYTES = 4 * 2**30  # of memory: what a worker may use
_VIDEOS = {"mp4", "mov", "mkv", "webm", "avi", "mjpeg-avi", "wmv", "mpg", "ts", "flv"}
_BIG = {"svs-real", "ndpi-real"}  # slow, and read by the same code as the others
_LOST = ("internal", "worker-lost", "attempts-spent")
_NAMES = ("a.svs", "../../a.png", "con.mp4", "شريحة.png", "a\u202egpj.exe", "x" * 300 + ".tif", ".")


@dataclass(slots=True)
class _Run:
    portal: Portal
    call: Caller
    case: str
    canvas: str
    seed: int


def upload_outcomes(
    *, minutes: float, seed: int, keep: Path | None = None, told: Callable[[str], None] = print
) -> Iterator[Outcome]:
    """Send files for so long, and say what became of each; a last one for the portal itself.

    Args:
        keep: where to write the files that were findings.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the database server runs as another user
        (Path(folder) / "portal").mkdir(mode=0o755)
        files = {name: data for name, data in samples(Path(folder)).items() if name not in _BIG}
        portal = Portal(Path(folder) / "portal", has_volume=False)
        try:
            yield from _sent(portal, files, minutes=minutes, seed=seed, keep=keep)
        finally:
            portal.stop()
            told(f"The portal's last words:\n{portal.tail()[-1_000:]}")


def _sent(
    portal: Portal, files: dict[str, bytes], *, minutes: float, seed: int, keep: Path | None
) -> Iterator[Outcome]:
    who = portal.control("prepare")
    portal.start()
    portal.wait_until_ready(READY_S)
    call = Caller(portal.url, who["token"], Journal())
    run = _Run(portal, call, who["case"], "", seed)
    run.canvas = _canvas(run, files["png"])
    everything = {**files, **documents()}
    names = sorted(everything)
    ends = time.monotonic() + 60 * minutes
    number = 0
    while time.monotonic() < ends and _stored_bytes(portal) < STORAGE_BYTES:
        name = names[number % len(names)]
        rng = random.Random(f"{seed}-{number}")
        data = everything[name] if rng.random() < 0.1 else damaged(rng, everything[name])
        try:
            sent = _document if name in documents() else _file
            kind, message = sent(run, name, data, rng)
        except NoAnswer:
            kind, message = "internal", "no answer"
        outcome = Outcome(number, name, kind, message)
        if keep is not None and outcome.is_finding:
            (keep / f"{seed}-{number}-{name}").write_bytes(data)
        yield outcome
        number += 1
    yield Outcome(number, "portal", *_settled(portal))


def _canvas(run: _Run, png: bytes) -> str:
    """The still that documents are imported onto."""
    status, body = run.call("POST", "/slides/", form=({"case": run.case}, "a.png", png))
    assert status in (200, 202), (status, body)
    _job_ended(run, body)
    status, item = run.call("GET", f"/slides/{body['id']}/")
    assert status == 200 and item["state"] == "ready", item
    return str(item["canvas"])


def _file(run: _Run, name: str, data: bytes, rng: random.Random) -> tuple[str, str]:
    kind = "videos" if name in _VIDEOS or name.startswith("dicom-video") else "slides"
    filename = rng.choice(_NAMES).replace('"', "")
    status, body = run.call("POST", f"/{kind}/", form=({"case": run.case}, filename, data))
    if status not in (200, 202):
        return _refused(status, body)
    job = _job_ended(run, body)
    if job is not None and job["state"] not in ("succeeded", "failed", "cancelled"):
        return "limit", f"its job is still {job['state']} after {JOB_S} s"
    if job is not None and job["error"]:
        is_lost = job["error"]["code"] in _LOST or not job["error"]["message"]
        return "internal" if is_lost else job["error"]["code"], job["error"]["message"]
    status, item = run.call("GET", f"/{kind}/{body['id']}/")
    if status == 404:
        return "quarantined", ""  # its upload says why
    if status != 200:
        return _refused(status, item)
    run.call("DELETE", f"/{kind}/{body['id']}/")
    if item["state"] == "ready":
        return "accepted", ""
    if item["state"] != "failed" or not item["error"] or not item["error"]["message"]:
        return "internal", f"no reason: {json.dumps(item)[:500]}"
    return item["error"]["code"], item["error"]["message"]


def _document(run: _Run, name: str, data: bytes, rng: random.Random) -> tuple[str, str]:
    how = rng.choice(("", "?dry_run=1", "?background=1"))
    path = f"/canvases/{run.canvas}/roi-file/{how}"
    headers = {"Content-Type": "application/octet-stream"}
    status, body = run.call("POST", path, data=data, headers=headers)
    if status == 202:
        job = _job_ended(run, body)
        if job is None or job["state"] not in ("succeeded", "failed"):
            return "limit", f"its job does not end: {job}"
        if job["error"]:
            lost = job["error"]["code"] in _LOST or not job["error"]["message"]
            return "internal" if lost else job["error"]["code"], job["error"]["message"]
        status, row = run.call("GET", f"/roi-imports/{body['id']}/")
        body = row["report"]
    if status != 200:
        return _refused(status, body)
    silent = [one for one in body["items"] if one["status"] == "refused" and not one["reason"]]
    if silent or body["total"] != sum(body[word] for word in _COUNTED):
        return "internal", f"a shape without a reason: {json.dumps(body)[:500]}"
    return "accepted", ""


_COUNTED = ("created", "updated", "restored", "unchanged", "refused")


def _refused(status: int, body: Any) -> tuple[str, str]:
    if status >= 500 or not isinstance(body, dict) or not body.get("detail"):
        return "internal", f"{status}: {json.dumps(body)[:500]}"
    return str(body.get("code", status)), str(body["detail"])


def _job_ended(run: _Run, body: dict[str, Any]) -> dict[str, Any] | None:
    """The job of an answer once it has ended, or as it is after ``JOB_S``."""
    job: dict[str, Any] | None = body.get("job")
    ends = time.monotonic() + JOB_S
    while job and job["state"] in ("queued", "running") and time.monotonic() < ends:
        time.sleep(POLL_S)
        _, job = run.call("GET", f"/jobs/{job['id']}/")
    return job


def _settled(portal: Portal) -> tuple[str, str]:
    """Whether the portal ends as it began: alive, with nothing under way, no larger than it may."""
    if portal.tree.poll() is not None or portal.starts > 1:
        return "crash", f"the portal ended; {portal.tail()}"
    ends = time.monotonic() + JOB_S
    while (moving := portal.moving()) and time.monotonic() < ends:
        time.sleep(POLL_S)
    if moving:
        return "limit", f"{moving} jobs have not ended"
    words = Counter(word for word in _LOST if word in portal.output.read_text(errors="replace"))
    if words["worker-lost"]:
        return "crash", f"a worker was lost; {portal.tail()}"
    largest = max((_rss_bytes(pid) for pid in _tree(portal.tree.pid)), default=0)
    if largest > PROCESS_BYTES:
        return "limit", f"a process holds {largest / 2**30:.1f} GiB"
    return "accepted", ""


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from _tree(child)


def _rss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS")), 0)


def _stored_bytes(portal: Portal) -> int:
    return sum(path.stat().st_size for path in portal.storage.rglob("*") if path.is_file())

"""Damaged and hostile files through a portal of its own, over REST, as a person sends them.

``make fuzz UPLOADS=1 MINUTES=60``. Slides and videos are sent as forms or as tus transfers, in
pieces or in parts, some of them with false headers; documents as bodies. A finding is an answer of
500 or more, none at all, a worker that was lost, a job that does not end, a process that grows
beyond ``PROCESS_BYTES``, or a file whose refusal gives no reason.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psycopg

from tests.chaos.http_calls import Caller, Journal, NoAnswer
from tests.chaos.portal import Portal, children, command
from tests.fuzz.damage import damaged
from tests.fuzz.documents import HEIGHT_PX, WIDTH_PX, documents
from tests.fuzz.run import Outcome
from tests.fuzz.samples import samples
from tests.polling import wait_until

READY_S = 180
JOB_S = 300  # of a file of less than a megabyte; the sandbox stops it long before
POLL_S = 0.2
STORAGE_BYTES = 2 * 2**30  # the run ends there: what is deleted stays in the trash
TUS_SHARE = 0.5  # of the slides and videos; the others are forms
SAMPLE_EVERY_S = 10.0
PROCESS_BYTES = 4 * 2**30  # of memory: what a worker may use
_VIDEOS = {"mp4", "mov", "mkv", "webm", "avi", "mjpeg-avi", "wmv", "mpg", "ts", "flv"}
_BIG = {"svs-real", "ndpi-real"}  # slow, and read by the same code as the others
_TUS = {"Tus-Resumable": "1.0.0"}
_PIECE_TYPE = "application/offset+octet-stream"
_LOST = ("internal", "worker-lost", "attempts-spent")
_FAILURES = {str(status) for status in range(500, 600)}
_NAMES = ("a.svs", "../../a.png", "con.mp4", "شريحة.png", "a\u202egpj.exe", "x" * 300 + ".tif", ".")


@dataclass(slots=True)
class _Run:
    portal: Portal
    call: Caller
    case: str
    canvas: str
    seed: int


def upload_outcomes(
    *, minutes: float, seed: int, keep: Path | None = None, report: Callable[[str], None] = print
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
            report(f"The portal's last words:\n{portal.tail()[-1_000:]}")


def _sent(
    portal: Portal, files: dict[str, bytes], *, minutes: float, seed: int, keep: Path | None
) -> Iterator[Outcome]:
    who = portal.control("prepare")
    portal.start()
    portal.wait_until_ready(READY_S)
    call = Caller(portal.url, who["token"], Journal())
    run = _Run(portal, call, who["case"], "", seed)
    run.canvas = _canvas(run)
    everything = {**files, **documents()}
    names = sorted(everything)
    ends = time.monotonic() + 60 * minutes
    number, sampled = 0, 0.0
    rss_bytes: defaultdict[int, list[int]] = defaultdict(list)
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
        if time.monotonic() > sampled + SAMPLE_EVERY_S:
            sampled = time.monotonic()
            for pid in _tree(portal.tree.pid):
                rss_bytes[pid].append(_rss_bytes(pid))
    yield Outcome(number, "portal", *_settled(portal, rss_bytes, call.journal.answers))


def _canvas(run: _Run) -> str:
    """The still that documents are imported onto: no file of the run, as those are deleted."""
    png = cv2.imencode(".png", np.full((HEIGHT_PX, WIDTH_PX, 3), 200, np.uint8))[1].tobytes()
    status, body = run.call("POST", "/slides/", form=({"case": run.case}, "a.png", png))
    assert status in (200, 202), (status, body)
    _job_ended(run, body)
    status, item = run.call("GET", f"/slides/{body['id']}/")
    assert status == 200 and item["state"] == "ready", item
    return str(item["canvas"])


def _file(run: _Run, name: str, data: bytes, rng: random.Random) -> tuple[str, str]:
    filename = rng.choice(_NAMES)
    if rng.random() < TUS_SHARE:
        return _transfer(run, filename, data, rng)
    kind = "videos" if name in _VIDEOS or name.startswith("dicom-video") else "slides"
    status, body = run.call("POST", f"/{kind}/", form=({"case": run.case}, filename, data))
    if status not in (200, 202):
        return _refused(status, body)
    job = _job_ended(run, body)
    if job is not None and job["state"] not in ("succeeded", "failed", "cancelled"):
        return "limit", f"its job is still {job['state']} after {JOB_S} s"
    if job is not None and job["error"]:
        return _reason(job["error"])
    return _item(run, kind, body["id"])


def _item(run: _Run, kind: str, item_id: str) -> tuple[str, str]:
    """State of an item whose job has ended; it is deleted."""
    status, item = run.call("GET", f"/{kind}/{item_id}/")
    if status != 200:
        return _refused(status, item)
    run.call("DELETE", f"/{kind}/{item_id}/")
    if item["state"] == "ready":
        return "accepted", ""
    if item["state"] != "failed":
        return "internal", f"its job has ended: {json.dumps(item)[:500]}"
    return _reason(item["error"])


def _transfer(run: _Run, filename: str, data: bytes, rng: random.Random) -> tuple[str, str]:
    """Send a file by tus in up to three pieces, or as two parts that are joined."""
    metadata = {"filename": filename, "case": run.case}
    if rng.random() < 0.3:
        metadata["sha256"] = hashlib.sha256(data + rng.choice((b"", b"", b"x"))).hexdigest()
    if rng.random() < 0.3:
        cut = rng.randrange(len(data) + 1)
        parts = []
        for part in (data[:cut], data[cut:]):
            status, content = _announced(
                run, part, {"case": run.case}, {"Upload-Concat": "partial"}
            )
            if status == 201:
                status, content = _pieces(run, content, part, rng)
            if status not in (200, 201, 204):
                return _refused(status, content)
            parts.append(content)
        places = " ".join(f"/api/v1{path}" for path in parts)
        status, content = _announced(run, None, metadata, {"Upload-Concat": f"final;{places}"})
    else:
        status, content = _announced(run, data, metadata, {})
        if status == 201:
            status, content = _pieces(run, content, data, rng)
    if status not in (200, 201, 204):
        return _refused(status, content)
    return _transfer_ended(run, content)


def _announced(
    run: _Run, data: bytes | None, fields: dict[str, str], headers: dict[str, str]
) -> tuple[int, Any]:
    """Status, and the path of the transfer or the problem."""
    metadata = ",".join(
        f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in fields.items()
    )
    length = {} if data is None else {"Upload-Length": str(len(data))}
    sent = {**_TUS, **length, "Upload-Metadata": metadata, **headers}
    status, body, answered = run.call.answer("POST", "/uploads/", headers=sent, data=b"")
    return status, answered["Location"].partition("/api/v1")[2] if status == 201 else body


def _pieces(run: _Run, path: str, data: bytes, rng: random.Random) -> tuple[int, Any]:
    """Status of the last piece, and the path of the transfer or the problem."""
    begin = 0
    for end in sorted({*rng.choices(range(1, len(data) + 1), k=rng.randrange(3)), len(data)}):
        piece, headers = data[begin:end], {**_TUS, "Content-Type": _PIECE_TYPE}
        headers["Upload-Offset"] = rng.choice((*[str(begin)] * 12, "-1", str(end + 1), "1e3", ""))
        digest = hashlib.sha256(piece + rng.choice((b"", b"", b"x"))).digest()
        if rng.random() < 0.5:
            headers["Upload-Checksum"] = f"sha256 {base64.b64encode(digest).decode()}"
        status, content = run.call("PATCH", path, headers=headers, data=piece)
        if status != 204:
            run.call("DELETE", path, headers=_TUS)
            return status, content
        begin = end
    return 204, path


def _transfer_ended(run: _Run, path: str) -> tuple[str, str]:
    """State of a transfer once its jobs have ended; what was made of it is deleted."""
    upload: dict[str, Any] = {}

    def outcome() -> tuple[str, str] | None:
        status, body = run.call("GET", path)
        if status != 200:
            return _refused(status, body)
        upload.update(body)
        if body["error"]:
            return _reason(body["error"])
        if item := body["item"]:
            status, row = run.call("GET", f"/{item['kind']}s/{item['id']}/")
            if status == 200 and row["state"] != "preparing":
                return _item(run, f"{item['kind']}s", item["id"])
        return None

    try:
        return wait_until(outcome, path, within_s=JOB_S, every_s=POLL_S)
    except TimeoutError:
        return "limit", f"the transfer is still {upload.get('state')} after {JOB_S} s"


def _reason(error: dict[str, str]) -> tuple[str, str]:
    """Code and message of a refusal; ``internal`` where it is nobody's file that is wrong."""
    is_lost = error["code"] in _LOST or not error["message"]
    return "internal" if is_lost else error["code"], error["message"] or json.dumps(error)


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
            return _reason(job["error"])
        status, row = run.call("GET", f"/roi-imports/{body['id']}/")
        body = row["report"]
    if status != 200:
        return _refused(status, body)
    silent = [
        upload for upload in body["items"] if upload["status"] == "refused" and not upload["reason"]
    ]
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

    def has_ended() -> bool:
        nonlocal job
        if job and job["state"] in ("queued", "running"):
            _, job = run.call("GET", f"/jobs/{job['id']}/")
        return not job or job["state"] not in ("queued", "running")

    with suppress(TimeoutError):
        wait_until(has_ended, "the end of a job", within_s=JOB_S, every_s=POLL_S)
    return job


def _settled(
    portal: Portal, rss_bytes: Mapping[int, Sequence[int]], answers: Mapping[str, int]
) -> tuple[str, str]:
    """Check that the portal is alive at the end, with nothing under way and bounded memory.

    Args:
        rss_bytes: resident memory of its processes during the run. answers: counted by their
            method, path and status.
    """
    if portal.tree.poll() is not None or portal.starts > 1:
        return "crash", f"the portal ended; {portal.tail()}"
    try:
        wait_until(lambda: not portal.moving(), "all jobs", within_s=JOB_S, every_s=POLL_S)
    except TimeoutError:
        return "limit", f"{portal.moving()} jobs have not ended"
    failed = {what: n for what, n in answers.items() if what.split()[-1] in ("none", *_FAILURES)}
    if failed:
        return "internal", f"answers that are the portal's fault: {failed}"
    with psycopg.connect(portal.postgres.url) as database:
        query = "SELECT kind, error_code FROM jobs_job WHERE error_code = ANY(%s)"
        lost = database.execute(query, [list(_LOST)]).fetchall()
        again = database.execute("SELECT count(*) FROM jobs_job WHERE attempts > 1").fetchone()
    if lost:
        return "crash", f"jobs without a result: {lost[:20]}; {portal.tail()}"
    memory = ", ".join(
        f"{_role(pid)} {result[0] / 2**20:.0f}, {result[-1] / 2**20:.0f}, {max(result) / 2**20:.0f}"
        for pid, result in rss_bytes.items()
        if len(result) > 1
    )
    message = (
        f"{sum(answers.values())} answers; {again[0] if again else 0} jobs were begun twice; "
        f"MiB at first, at last, at most: {memory}"
    )
    is_large = any(max(result) > PROCESS_BYTES for result in rss_bytes.values())
    return "limit" if is_large else "accepted", message


def _role(pid: int) -> str:
    words = ("gunicorn", "uvicorn", "serve-api", "celery", "reaper", "front", "serve")
    return next((word for word in words if word in command(pid)), "child")


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

"""``python -m tests.killing.machine make|write|look|manage ...``: a lab at work, seen from outside.

``make FOLDER`` fills a portal; ``write SECONDS LOG`` goes on working and notes each answer that it
got; ``look LOG UNTIL`` says what of the answers before a moment is not there, and what still works.
"""

from __future__ import annotations

import json
import time
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import django

django.setup()

import numpy as np  # noqa: E402
from django.core.management import CommandError, call_command  # noqa: E402
from django.test import Client  # noqa: E402
from PIL import Image  # noqa: E402

from portal.annotations.models import Roi, RoiRevision  # noqa: E402
from portal.annotations.services.rois import roi_create, roi_update  # noqa: E402
from portal.archive.models import Canvas, Case, Slide, Video  # noqa: E402
from portal.archive.services.cases import case_create  # noqa: E402
from portal.archive.services.items import item_receive  # noqa: E402
from portal.archive.storage import files as storage  # noqa: E402
from portal.embeddings.indexes import Scope  # noqa: E402
from portal.embeddings.models import Embedding, Encoder, IndexSnapshot  # noqa: E402
from portal.embeddings.services.embeddings import embedding_save  # noqa: E402
from portal.embeddings.services.indexes import index_build_submit  # noqa: E402
from portal.jobs.models import ENDED_STATES, Job  # noqa: E402
from portal.labs.models import Lab, Membership, User  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402
from tests.world import slide_file, video_file  # noqa: E402

SEARCHED = 40
UPLOAD_EVERY = 5  # regions: each picture is work for the worker, all of which the test waits for
PAUSE_S = 0.05  # after each region: a lab at full speed would only fill the tables


def _canvas() -> Canvas:
    return Canvas.objects.get(slide__name="slide.tif")


def _user() -> User:
    return User.objects.get()


def _box(at: int) -> dict[str, Any]:
    left, top = 10 + at % 500, 10 + at // 500
    ring = [[left, top], [left + 20, top], [left + 20, top + 20], [left, top + 20], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def make(folder: str) -> object:
    """A lab with a slide and a video, received as uploads are; a worker prepares them."""
    lab = Lab.objects.create(name="Keep", slug="keep")
    user = User.objects.create_user("keeper@example.org", "correct horse battery")
    Membership.objects.create(lab=lab, user=user, role="manager")
    case = case_create(lab=lab, user=user, accession="K-1", patient_key="patient-1", organ="colon")
    for path in (slide_file(Path(folder)), video_file(Path(folder))):
        with path.open("rb") as file:
            item_receive(case=case, file=file, filename=path.name, user=user)
    return None


def draw() -> object:
    """ROIs with vectors, and an index file of them; a worker builds it."""
    user, canvas, rng = _user(), _canvas(), np.random.default_rng(7)
    encoder = Encoder.objects.create(
        name="kept", version="1", config_hash="0" * 64, dim=8, is_default=True
    )
    for at in range(SEARCHED):
        roi = roi_create(canvas=canvas, user=user, geometry=_box(at)).roi
        embedding_save(
            roi_id=roi.pk,
            geometry=roi.geometry,
            encoder=encoder,
            vector=rng.normal(size=8).astype(np.float32),
            patch_count=1,
            seconds=0.1,
        )
    index_build_submit(scope=Scope(encoder, canvas.lab_id))
    return None


def ready() -> object:
    """Return whether the worker has emptied its queue."""
    return not Job.objects.filter(queue="default").exclude(state__in=ENDED_STATES).exists()


def write(seconds: str, log: str) -> object:
    """Draw, redraw and upload; each line of the log is an answer that a user got."""
    user, canvas, case = _user(), _canvas(), Case.objects.get()
    end, at = time.time() + float(seconds), 0
    with Path(log).open("a", encoding="utf-8") as lines:

        def note(**what: Any) -> None:
            lines.write(json.dumps({"at": time.time(), **what}) + "\n")
            lines.flush()

        while time.time() < end:
            at += 1
            roi = roi_create(canvas=canvas, user=user, geometry=_box(1000 + at)).roi
            note(roi=str(roi.pk), version=1)
            changed = roi_update(
                roi=roi, user=user, expected_version=1, changes={"name": f"number {at}"}
            ).roi
            note(roi=str(roi.pk), version=changed.version)
            time.sleep(PAUSE_S)  # of a person, between two edits
            if at % UPLOAD_EVERY:
                continue
            picture = BytesIO()
            Image.new("RGB", (32, 32), (at % 256, at // 256, 7)).save(picture, "PNG")
            data = BytesIO(picture.getvalue())
            item = item_receive(case=case, file=data, filename=f"{at}.png", user=user).item
            note(slide=str(item.pk), sha256=item.asset.sha256)
    return at


def manage(*arguments: str) -> object:
    """Run a command of ``manage.py`` in this process; returns its output or its error."""
    output = StringIO()
    try:
        call_command(*arguments, stdout=output, stderr=output)
    except CommandError as error:
        return {"error": str(error), "said": output.getvalue()}
    return {"error": None, "said": output.getvalue()}


def look(log: str, until: str) -> object:
    """List what was acknowledged before ``until`` and is missing, and what a user sees."""
    lost, answered = [], 0
    for line in Path(log).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["at"] >= float(until):
            continue
        answered += 1
        if "roi" in row:
            rows = RoiRevision.objects.filter(roi_id=row["roi"], version=row["version"])
            is_there = rows.exists()
        else:
            slide = Slide.objects.select_related("asset").filter(pk=row["slide"]).first()
            path = storage.asset_path(slide.lab_id, row["sha256"]) if slide else None
            is_there = path is not None and storage.file_sha256(path) == row["sha256"]
        if not is_there:
            lost.append(row)
    return {"answered": answered, "lost": lost, **_seen()}


def _seen() -> dict[str, Any]:
    client = Client(headers={"host": "localhost"})
    client.force_login(_user())
    canvas = _canvas()
    video = Video.objects.get()
    first = Embedding.objects.order_by("pk")[0]
    similar = client.get(
        f"/api/v1/rois/{first.roi_id}/similar/?k=10&exclude_same_patient=false"
    ).json()
    frames = client.get(f"/api/v1/videos/{video.pk}/frames/").json()
    tile = client.get(f"/api/v1/canvases/{canvas.pk}/tiles/0/0/0.jpg")
    return {
        "people": User.objects.count(),
        "password": _user().check_password("correct horse battery"),
        "rois": Roi.objects.exclude(embeddings=None).count(),
        "viewer": client.get(f"/canvases/{canvas.pk}/").status_code,
        "tile": [tile.status_code, len(tile.content)],
        "frames": len(frames["frames"]),
        "hits": [hit["roi"]["id"] for hit in similar["results"]],
        "index": IndexSnapshot.objects.count(),
        "searched": similar["index"],
    }


if __name__ == "__main__":
    dispatch(
        {
            **{"make": make, "draw": draw, "ready": ready, "write": write, "look": look},
            "manage": manage,
        }
    )

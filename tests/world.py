"""One of everything in a lab, made through the services, for tests that sweep over the portal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from django.db import transaction
from django.test.utils import override_settings

from ml.imaging.slides.pyramids import write_pyramid
from portal.annotations.models import Label, Roi
from portal.annotations.services.labels import label_create
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, Case, Evidence, Slide, Upload, UploadState, Video
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.embeddings.models import Encoder
from portal.explore.models import RegionMap
from portal.jobs.models import Job
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, User
from portal.model_training.models import Learning
from portal.mosaics.models import Followup, Mosaic
from portal.mosaics.services.mosaics import mosaic_create
from portal.search.models import Query, QuerySource, Report
from portal.search.selectors.reports import ReportContent, StoredOptions
from portal.search.services.queries import QueryData, query_create


@dataclass
class World:
    """Objects made by ``build``."""

    case: Case
    slide: Slide
    video: Video
    canvas: Canvas
    label: Label
    roi: Roi
    job: Job
    mosaic: Mosaic
    followup: Followup
    encoder: Encoder
    query: Query
    report: Report
    map: RegionMap
    learning: Learning

    def ids(self) -> dict[str, str]:
        """Ids by the preceding word of a URL."""
        return {
            "cases": str(self.case.pk),
            "slides": str(self.slide.pk),
            "videos": str(self.video.pk),
            "canvases": str(self.canvas.pk),
            "labels": str(self.label.pk),
            "rois": str(self.roi.pk),
            "jobs": str(self.job.pk),
            "mosaics": str(self.mosaic.pk),
            "followups": str(self.followup.pk),
            "encoders": str(self.encoder.pk),
            "queries": str(self.query.pk),
            "reports": str(self.report.pk),
            "maps": str(self.map.pk),
            "learnings": str(self.learning.pk),
        }


def slide_file(folder: Path) -> Path:
    """A tiny pyramid with structure in it."""
    path = folder / "slide.tif"
    if not path.exists():
        rng = np.random.default_rng(3)
        blocks = rng.integers(40, 255, (9, 11, 3), dtype=np.uint8)
        write_pyramid(np.kron(blocks, np.ones((64, 64, 1), np.uint8)), path, mpp=0.5)
    return path


def video_file(folder: Path) -> Path:
    """Twelve frames of h264."""
    path = folder / "video.mp4"
    if not path.exists():
        rng = np.random.default_rng(4)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libx264", rate=25)
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
            scene = rng.integers(0, 255, (64, 160, 3), dtype=np.uint8)
            for step in range(12):
                picture = np.ascontiguousarray(scene[:, 2 * step : 2 * step + 96])
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
    return path


def moving_video_file(folder: Path) -> Path:
    """Twelve frames over a spotted plane, each 12 px to the right of the one before."""
    path = folder / "sweep.mp4"
    rng = np.random.default_rng(5)
    width, height, count, step_px = 256, 192, 12, 12
    scene = np.full((height, width + step_px * count, 3), 120, np.uint8)
    for _ in range(400):
        centre = (int(rng.integers(scene.shape[1])), int(rng.integers(height)))
        color = [int(v) for v in rng.integers(30, 255, 3)]
        cv2.circle(scene, centre, int(rng.integers(3, 12)), color, -1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"crf": "12"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for i in range(count):
            view = np.ascontiguousarray(scene[:, step_px * i : step_px * i + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect files in this process: the child process has tests of its own."""

    def run(target: str, arguments: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        module, _, name = target.partition(":")
        function: Callable[..., dict[str, Any]] = getattr(import_module(module), name)
        return function(**arguments, progress=options["progress"])

    monkeypatch.setattr("portal.archive.inspection.run_limited", run)


class _RolledBack(Exception):
    pass


@contextmanager
def rolled_back(folder: Path) -> Iterator[None]:
    """For fixtures of a module: files are kept in ``folder``, and rows last until its end.

    Each test of the module is a savepoint within.
    """
    patch = pytest.MonkeyPatch()
    in_process(patch)
    try:
        with override_settings(TESSERA_STORAGE=folder), transaction.atomic():
            yield
            raise _RolledBack
    except _RolledBack:
        pass
    finally:
        patch.undo()


def build(lab: Lab, user: User, folder: Path) -> World:
    """One of everything; ``user`` must be a manager. The mosaic is requested, not built."""
    case = case_create(lab=lab, user=user, accession="W-1", patient_key="p1", organ="colon")
    items: list[Slide | Video] = []
    jobs: list[Job] = []
    for path in (slide_file(folder), video_file(folder)):
        with path.open("rb") as file:
            received = item_receive(case=case, file=file, filename=path.name, user=user)
        assert received.job is not None
        job_run(received.job.pk)
        received.item.refresh_from_db()
        assert received.item.canvas is not None, received.item.error_message
        items.append(received.item)
        jobs.append(received.job)
    slide, video = items
    assert isinstance(slide, Slide) and isinstance(video, Video)
    assert slide.canvas is not None and video.canvas is not None
    label = label_create(lab=lab, user=user, name="Swept")
    ring = [[10, 10], [400, 10], [400, 400], [10, 400], [10, 10]]
    roi = roi_create(
        canvas=slide.canvas,
        user=user,
        geometry={"type": "Polygon", "coordinates": [ring]},
        label=label,
    ).roi
    followup = Followup.objects.create(
        lab=lab, roi=roi, roi_version=roi.version, target=video.canvas, created_by=user
    )
    encoder = Encoder.objects.create(
        name=f"world-{lab.slug}", version="1", config_hash="0" * 64, dim=4, is_default=False
    )
    query = query_create(
        data=QueryData(source=QuerySource.TISSUE, canvas_id=slide.canvas.pk), user=user
    )
    return World(
        case=case,
        slide=slide,
        video=video,
        canvas=slide.canvas,
        label=label,
        roi=roi,
        job=jobs[0],
        mosaic=mosaic_create(video=video, user=user).mosaic,
        followup=followup,
        encoder=encoder,
        query=query,
        learning=Learning.objects.create(lab=lab, kind=encoder.kind, user=user, base=encoder),
        report=_report(query),
        map=_map(encoder, lab),
    )


def _map(encoder: Encoder, lab: Lab) -> RegionMap:
    """Create an empty map."""
    columns = ("ids", "positions", "neighbours", "distances", "pairs", "pair_distances")
    return RegionMap.objects.create(
        lab=lab,
        encoder=encoder,
        last_embedding_id=0,
        laid_out=0,
        radius=1e-3,
        is_calibrated=False,
        **dict.fromkeys(columns, b""),
    )


def _report(query: Query) -> Report:
    """Create a report of a search without hits, whose author was deleted."""
    empty = ReportContent(
        facts=[],
        filters=[],
        options=StoredOptions(
            k=1, exclude_same_patient=True, expand=0, diffuse=False, by_case=True, filters={}
        ),
        encoder=("box", "1", "0"),
        index=(0, 0, 0),
        searched=None,
        leaves_patient_out=False,
        nothing_close=False,
        refined_by=0,
        expanded_by=0,
        is_diffused=False,
        votes={"label": [], "diagnosis": []},
        hits=0,
    )
    return Report.objects.create(
        lab=query.lab, canvas=query.canvas, query=query, name="R", content=empty.as_json()
    )


def withheld(made: World, user: User) -> Upload:
    """The original of a redacted file, kept for managers."""
    return Upload.objects.create(
        lab=made.case.lab,
        case=case_create(lab=made.case.lab, user=user, accession="W-8"),
        filename="withheld.tif",
        name="withheld.tif",
        sha256=made.slide.asset.sha256,
        asset=made.slide.asset,
        state=UploadState.WITHHELD,
        created_by=user,
    )


HELD_SCOPE: dict[str, Any] = {
    "kind": "slide",
    "device": "scanner 4.1",
    "width_px": 704,
    "height_px": 576,
}


def quarantined(made: World, user: User) -> Upload:
    """A file of a case of its own, held back for a date in its picture."""
    upload = Upload.objects.create(
        lab=made.case.lab,
        case=case_create(lab=made.case.lab, user=user, accession="W-7"),
        filename="held.tif",
        name="held.tif",
        sha256=made.slide.asset.sha256,
        asset=made.slide.asset,
        state=UploadState.QUARANTINED,
        error_code="phi-in-pixels",
        error_message="It may show who somebody is. A date in the picture at the upper left.",
        created_by=user,
    )
    place = {"x": 0.1, "y": 0.1, "width": 0.2, "height": 0.05, "at_s": None}
    findings = [{"kind": "date", "text": "12/03/1961", **place}]
    Evidence.objects.create(
        lab=upload.lab,
        upload=upload,
        findings=findings,
        picture=b"\xff\xd8\xff",
        **HELD_SCOPE,
    )
    return upload

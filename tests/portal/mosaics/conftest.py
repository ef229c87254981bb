"""Videos with known motion, ready to be stitched."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from portal.archive.models import Asset, Canvas, Case, Video
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from portal.mosaics.models import Mosaic, MosaicComponent, MosaicFrame
from portal.mosaics.options import options_hash
from tests import world

FRAME_WIDTH, FRAME_HEIGHT, STEP_PX = 224, 176, 12


@pytest.fixture(autouse=True)
def _own_storage(storage: Path) -> None:
    """Every test has a storage root of its own."""


def texture(width: int, height: int, seed: int = 0) -> Any:
    """(H, W, 3) uint8, full of spots to hold on to."""
    rng = np.random.default_rng(seed)
    image = np.full((height, width, 3), 120, np.uint8)
    for _ in range(width * height // 250):
        x, y = int(rng.integers(width)), int(rng.integers(height))
        color = [int(v) for v in rng.integers(30, 255, 3)]
        cv2.circle(image, (x, y), int(rng.integers(3, 12)), color, -1)
    return cv2.GaussianBlur(image, (0, 0), 1.2)


def write_video(path: Path, frames: list[Any]) -> Path:
    """An h264 mp4, 25 frames a second."""
    import av

    height, width = frames[0].shape[:2]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25, options={"crf": "12"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    return path


@pytest.fixture(scope="session")
def sweep_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten frames moving to the right by 12 px each; the fifth is black."""
    count = 10
    scene = texture(FRAME_WIDTH + STEP_PX * count, FRAME_HEIGHT)
    frames = [
        np.ascontiguousarray(scene[:, STEP_PX * i : STEP_PX * i + FRAME_WIDTH])
        for i in range(count)
    ]
    frames[4] = np.zeros_like(frames[4])
    return write_video(tmp_path_factory.mktemp("videos") / "sweep.mp4", frames)


@pytest.fixture(scope="session")
def blind_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six frames without anything to see."""
    frames = [np.full((FRAME_HEIGHT, FRAME_WIDTH, 3), 128, np.uint8)] * 6
    return write_video(tmp_path_factory.mktemp("videos") / "blind.mp4", frames)


def run_job(job: Job | None) -> Job:
    """Run the job in this process."""
    from portal.jobs.worker.runner import job_run

    assert job is not None
    job_run(job.pk)
    job.refresh_from_db()
    return job


@pytest.fixture
def ingest(storage: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Lab, User, Path], Video]:
    """``ingest(lab, user, file)``: a ready video in a case of its own, opened in this process."""
    from portal.archive.services.cases import case_create
    from portal.archive.services.items import item_receive

    world.in_process(monkeypatch)

    def run(lab: Lab, user: User, file: Path) -> Video:
        case: Case = case_create(lab=lab, user=user, accession=f"{file.stem}-{lab.slug}")
        received = item_receive(
            case=case, file=io.BytesIO(file.read_bytes()), filename=file.name, user=user
        )
        job = run_job(received.job)
        assert job.state == "succeeded", job.error_message + job.traceback
        return Video.objects.select_related("lab", "case", "canvas").get(pk=received.item.pk)

    return run


@pytest.fixture
def video(ingest: Callable[..., Video], lab: Lab, annotator: User, sweep_file: Path) -> Video:
    """The sweep, ready."""
    return ingest(lab, annotator, sweep_file)


def make_video(lab: Lab, user: User, *, accession: str = "V-1", name: str = "Sweep") -> Video:
    """Rows of a ready video of 100 x 80 px, 1 ms a tick, without any file."""
    case, _ = Case.objects.get_or_create(lab=lab, accession=accession)
    fields = {"lab": lab, "case": case, "name": name}
    canvas = Canvas.objects.create(
        **fields,
        kind="video",
        modality="endoscopy",
        width_px=100,
        height_px=80,
        pixels_path="-",
        content_hash="v",
    )
    asset = Asset.objects.create(
        lab=lab, sha256=uuid.uuid4().hex, size_bytes=1, media_type="video/mp4"
    )
    return Video.objects.create(
        **fields, asset=asset, canvas=canvas, state="ready", time_base_s=0.001, frame_count=8
    )


LEVEL = {
    "width_px": 90,
    "height_px": 80,
    "downsample": 1.0,
    "tile_width_px": 256,
    "tile_height_px": 256,
}


def make_mosaic(video: Video, *, frames: int = 8) -> Mosaic:
    """Rows of a built mosaic: frame i is 10 i px to the right; 3 is skipped, 5 failed.

    Frames get sharper with time; those of an odd index have no bounds, as before there were any.
    """
    canvas = Canvas.objects.create(
        lab_id=video.lab_id,
        case_id=video.case_id,
        name="Sweep mosaic",
        kind="mosaic",
        modality="endoscopy",
        width_px=90 + 10 * frames,
        height_px=80,
        levels=[LEVEL],
        pixels_path="-",
        content_hash="m",
    )
    mosaic = Mosaic.objects.create(
        lab_id=video.lab_id,
        case_id=video.case_id,
        video=video,
        canvas=canvas,
        name="Sweep mosaic",
        state="ready",
        config_hash=options_hash({}),
        frame_count=frames,
        registered_count=frames - 2,
        motion_model="affine",
        anchor_index=2,
        seconds=1.5,
    )
    MosaicComponent.objects.create(
        mosaic=mosaic, index=0, canvas=canvas, anchor_index=2, registered_count=frames - 2
    )
    lost = {3: ("skipped", "blurred", "blurred"), 5: ("failed", "too few points agree", "no-match")}
    for i in range(frames):
        status, reason, code = lost.get(i, ("registered", "", ""))
        matrix = [[1, 0, 10 * i], [0, 1, 0], [0, 0, 1]] if status == "registered" else None
        bounds = {"left": 10 * i - 0.5, "top": -0.5, "right": 10 * i + 99.5, "bottom": 79.5}
        MosaicFrame.objects.create(
            mosaic=mosaic,
            index=i,
            pts=40 * i,
            status=status,
            reason=reason,
            reason_code=code,
            H_mosaic_from_frame=matrix,
            sharpness=0.1 * i,
            component=0 if matrix else None,
            **(bounds if matrix and i % 2 == 0 else {}),
        )
    return mosaic


@pytest.fixture
def ready_video(lab: Lab, annotator: User) -> Video:
    """A ready video, rows only."""
    return make_video(lab, annotator)


@pytest.fixture
def built(ready_video: Video) -> Mosaic:
    """A built mosaic of eight frames, rows only."""
    return make_mosaic(ready_video)


@pytest.fixture
def foreign_built(other_lab: Lab, stranger: User) -> Mosaic:
    """A built mosaic of the other lab, rows only."""
    return make_mosaic(make_video(other_lab, stranger))


@pytest.fixture
def mosaic(video: Video, annotator: User) -> Mosaic:
    """The sweep's mosaic, built."""
    from portal.mosaics.services.mosaics import mosaic_create

    requested = mosaic_create(video=video, user=annotator)
    job = run_job(requested.job)
    assert job.state == "succeeded", job.error_message + job.traceback
    return Mosaic.objects.select_related("canvas", "video__canvas", "case").get()

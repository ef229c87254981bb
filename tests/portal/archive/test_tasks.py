"""Ingest jobs in real child processes: good files, bad files, repeated and interrupted."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
import tifffile

from ml.errors import LimitExceededError
from ml.imaging.slides.tiles import TileSource
from portal.archive import inspection, tasks
from portal.archive.models import Canvas, Case, Slide, Upload, Video
from portal.archive.selectors.frames import frame_jpeg, frame_table
from portal.archive.services.gate.quarantine import quarantine_retry
from portal.core.errors import InvalidInputError
from portal.core.models import Event
from portal.core.tasks import JobCancelled
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_cancel, job_retry, job_submit
from portal.jobs.worker.runner import job_run
from portal.labs.models import User
from tests.ml.imaging.deidentification.support import AVC, SECRET, write_dicom_video
from tests.ml.imaging.labels import LEVELS, TILES, tissue, write_with_label
from tests.portal.archive.support import picture, run_job

pytestmark = pytest.mark.django_db


def bytes_below(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def failed(received: Any) -> Any:
    """Run the job, which must fail; what is left is the file in quarantine, which says why."""
    job = run_job(received.job)
    assert job.state == JobState.FAILED
    assert not type(received.item).all_objects.filter(pk=received.item.pk).exists()
    held = Upload.objects.get(state="quarantined")
    assert held.error_message == job.error_message
    return held


@pytest.mark.slow
def test_a_slide_becomes_a_canvas(case: Case, receive: Any, slide_file: Path) -> None:
    received = receive(case, slide_file, "sample.tif")
    job = run_job(received.job)
    slide = Slide.objects.get()
    canvas = Canvas.objects.get()
    assert job.result["canvas_id"] == str(canvas.pk)
    assert (slide.state, slide.canvas) == ("ready", canvas)
    assert (canvas.kind, canvas.width_px, canvas.height_px) == ("slide", 1200, 900)
    assert Event.objects.get(name="slide.ready").payload["slide_id"] == str(slide.pk)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["reduced", "of_the_same_shape"])
def test_a_label_among_the_levels_is_neither_served_nor_stored(
    case: Case, receive: Any, tmp_path: Path, storage: Path, how: str
) -> None:
    path = write_with_label(tmp_path / "a.tif", how)
    job = run_job(receive(case, path, "a.tif").job)
    assert job.state == JobState.SUCCEEDED, job.traceback
    slide = Slide.objects.select_related("asset", "canvas").get()
    sizes = [(level["width_px"], level["height_px"]) for level in slide.canvas.levels]
    assert sizes == LEVELS
    assert len([name for name in slide.asset.removed if name.endswith(" image")]) == 1
    with TileSource(storage / slide.canvas.pixels_path) as tiles:
        assert len(tiles.levels) == len(LEVELS)


@pytest.mark.slow
def test_pages_that_are_left_out_are_a_warning(case: Case, receive: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    with tifffile.TiffWriter(path) as tiff:
        for _ in range(3):
            tiff.write(tissue(), **TILES)
    run_job(receive(case, path, "a.tif").job)
    assert any("2 are left out" in warning for warning in Slide.objects.get().warnings)


@pytest.mark.slow
def test_a_still_gets_tiles(case: Case, receive: Any, storage: Path) -> None:
    received = receive(case, picture(), "a.png")
    run_job(received.job)
    canvas = Canvas.objects.get()
    assert (canvas.kind, canvas.mpp_x) == ("still", None)
    assert canvas.pixels_path == f"derived/{received.item.pk}/pixels.tif"
    pixels = (storage / canvas.pixels_path).read_bytes()
    assert canvas.content_hash == hashlib.sha256(pixels).hexdigest()


@pytest.mark.slow
def test_a_video_the_browser_plays_is_played_as_it_is(
    case: Case, receive: Any, video_file: Path
) -> None:
    run_job(receive(case, video_file, "v.mp4").job)
    video = Video.objects.get()
    assert (video.state, video.codec, video.frame_count) == ("ready", "h264", 30)
    assert video.media_path.startswith("assets/")
    assert Event.objects.filter(name="video.ready").exists()


@pytest.mark.slow
def test_a_video_the_browser_does_not_play_gets_a_rendition(
    case: Case, receive: Any, odd_video_file: Path, storage: Path, api: Any
) -> None:
    run_job(receive(case, odd_video_file, "v.avi").job)
    video = Video.objects.get()
    assert video.media_path == f"derived/{video.pk}/rendition.mp4"
    assert (storage / video.media_path).read_bytes()[4:8] == b"ftyp"
    answer = api.get(f"/api/v1/videos/{video.pk}/media/")
    assert answer.headers["Content-Type"] == "video/mp4"


@pytest.mark.slow
def test_a_dicom_video_is_cleaned_unwrapped_and_played(
    case: Case,
    receive: Any,
    video_file: Path,
    tmp_path: Path,
    storage: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    path = write_dicom_video(tmp_path / "a.dcm", video_file, AVC)
    with django_capture_on_commit_callbacks(execute=True):  # what arrived is deleted then
        job = run_job(receive(case, path, "a.dcm").job)
    assert job.state == JobState.SUCCEEDED, job.traceback
    video = Video.objects.select_related("canvas", "asset").get()
    assert {"PatientName", "PatientID"} <= set(video.asset.removed)
    assert video.media_path == video.canvas.pixels_path == f"derived/{video.pk}/unwrapped"
    assert SECRET.encode() not in b"".join(
        file.read_bytes() for file in storage.rglob("*") if file.is_file()
    )
    assert frame_jpeg(video.canvas, video, int(frame_table(video).pts[3]))


def test_running_twice_leaves_the_same_rows_and_bytes(
    case: Case, receive: Any, storage: Path, annotator: User, quick: None
) -> None:
    received = receive(case, picture(), "a.png")
    run_job(received.job)
    canvas, before = Canvas.objects.get(), bytes_below(storage)
    again = job_submit(
        kind="slide_ingest",
        args={"slide_id": str(received.item.pk)},
        lab=case.lab,
        user=annotator,
        target=received.item,
    )
    assert run_job(again).state == JobState.SUCCEEDED
    Slide.objects.update(state="preparing")  # as after a crash between two attempts
    third = job_submit(kind="slide_ingest", args=again.args, lab=case.lab, user=annotator)
    assert run_job(third).state == JobState.SUCCEEDED
    assert Canvas.objects.get().pk == canvas.pk
    assert bytes_below(storage) == before


def test_a_killed_attempt_writes_nothing_and_the_next_succeeds(
    case: Case, receive: Any, storage: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    received = receive(case, picture(), "a.png")
    before = bytes_below(storage)

    def die(**_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "slide_ready", die)
        job_run(received.job.pk)
    received.job.refresh_from_db()
    assert received.job.state == JobState.QUEUED
    assert Slide.objects.get().state == "preparing"
    assert bytes_below(storage) == before
    Job.objects.update(not_before=None)
    assert run_job(received.job).state == JobState.SUCCEEDED
    assert Slide.objects.get().state == "ready"


def test_a_cancelled_job_marks_its_item(
    case: Case, receive: Any, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = receive(case, picture(seed=1), "a.png")
    job_cancel(job=waiting.job, user=annotator)
    running = receive(case, picture(seed=2), "b.png")

    def cancelled(*_: Any, **__: Any) -> None:
        raise JobCancelled

    monkeypatch.setattr(inspection, "run_limited", cancelled)
    assert run_job(running.job).state == JobState.CANCELLED
    assert set(Slide.objects.values_list("state", "error_code")) == {("failed", "cancelled")}


def test_a_deleted_slide_ends_its_job(case: Case, receive: Any, annotator: User) -> None:
    received = receive(case, picture(), "a.png")
    received.item.delete()
    job = run_job(received.job)
    assert (job.state, job.error_code) == (JobState.FAILED, "gone")


@pytest.mark.slow
def test_a_slide_in_quarantine_can_be_tried_again(
    case: Case, receive: Any, manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = receive(case, picture(), "a.png")

    def full(*_: Any, **__: Any) -> None:
        raise LimitExceededError("opening the file took longer than 1 s and was stopped")

    with monkeypatch.context() as patch:
        patch.setattr(inspection, "run_limited", full)
        held = failed(received)
    assert held.error_code == "limit-exceeded"
    again = quarantine_retry(upload=held, user=manager)
    assert run_job(again.job).state == JobState.SUCCEEDED
    assert Slide.objects.get().state == "ready"


def test_a_job_retried_from_the_jobs_page_counts_as_well(
    case: Case, receive: Any, annotator: User, quick: None
) -> None:
    received = receive(case, picture(), "a.png")
    job_cancel(job=received.job, user=annotator)
    run_job(job_retry(job=received.job, user=annotator))
    assert Slide.objects.get().state == "ready"


# --- bad input -------------------------------------------------------------------------------


def reason(case: Case, receive: Any, content: bytes, name: str) -> str:
    """The code a file is refused by: on receipt where its head tells, else by its ingest."""
    try:
        received = receive(case, content, name)
    except InvalidInputError as error:
        return error.code
    code = str(failed(received).error_code)
    Upload.objects.all().delete()
    return code


def test_a_truncated_svs_is_refused_as_corrupt(
    case: Case, receive: Any, tessera_data: Path
) -> None:
    content_complete = (tessera_data / "histology/slides/cmu-1-small-region.svs").read_bytes()
    assert (
        reason(case, receive, content_complete[: len(content_complete) // 2], "cut.svs")
        == "corrupt-file"
    )
    assert reason(case, receive, content_complete[:-100_000], "cut2.svs") == "corrupt-file"


def test_a_truncated_pyramid_is_refused_as_corrupt(
    case: Case, receive: Any, slide_file: Path
) -> None:
    content_complete = slide_file.read_bytes()
    assert (
        reason(case, receive, content_complete[: len(content_complete) * 3 // 4], "cut.tif")
        == "corrupt-file"
    )


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"not a slide at all, only words", "unsupported-format", "a text file"),
        (b"", "unsupported-format", "empty"),
        (bytes(range(1, 64)), "unsupported-format", "unknown kind"),
    ],
)
def test_a_non_image_is_refused_and_not_stored(
    case: Case, receive: Any, storage: Path, content: bytes, code: str, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        receive(case, content, "a.svs")
    assert refused.value.code == code
    assert bytes_below(storage) == {}
    assert not Slide.objects.exists()


def test_a_zip_bomb_is_not_even_stored(
    case: Case, receive: Any, storage: Path, tmp_path: Path
) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("slide.svs", b"\0" * 50_000_000)
    with pytest.raises(InvalidInputError, match="ZIP"):
        receive(case, bomb, "slide.svs")
    assert bytes_below(storage) == {}


def huge_tiff(side: int = 2**31) -> bytes:
    """A TIFF whose directory claims ``side`` x ``side`` RGB pixels in one strip."""
    entries = [
        (256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 2),
        (273, 4, 1, 8), (277, 3, 1, 3), (278, 4, 1, side), (279, 4, 1, 100),
    ]  # fmt: skip
    body = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    directory = struct.pack("<H", len(entries)) + body + struct.pack("<I", 0)
    return b"II*\0" + struct.pack("<I", 108) + b"\0" * 100 + directory


def test_a_tiff_that_claims_too_much_is_refused_by_its_size(case: Case, receive: Any) -> None:
    item = failed(receive(case, huge_tiff(), "huge.tif"))
    assert item.error_code == "too-large"
    assert "2,147,483,648 x 2,147,483,648 px" in item.error_message


@pytest.mark.slow
def test_a_truncated_video_is_stored_with_a_notice(
    case: Case, receive: Any, tmp_path: Path
) -> None:
    from tests.portal.archive.support import make_video

    content_complete = make_video(tmp_path / "v.mkv", codec="libx264").read_bytes()
    run_job(receive(case, content_complete[: len(content_complete) // 2], "half.mkv").job)
    video = Video.objects.get()
    assert video.state == "ready"
    assert 0 < video.frame_count < 30
    assert video.warnings


@pytest.mark.slow
def test_a_video_without_a_video_stream_is_refused(
    case: Case, receive: Any, tmp_path: Path
) -> None:
    item = failed(receive(case, _sound(tmp_path / "sound.mkv"), "sound.mkv"))
    assert item.error_code == "no-video-stream"


def _sound(path: Path) -> Path:
    import av
    import numpy as np

    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("aac", rate=44100)
        silence = np.zeros((1, 44100), np.float32)
        frame = av.AudioFrame.from_ndarray(silence, format="fltp", layout="mono")
        frame.sample_rate = 44100
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path

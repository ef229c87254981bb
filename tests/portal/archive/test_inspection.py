"""Files from users never reach a decoder outside the child, and the child's words are checked."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import av
import numpy as np
import pytest

from ml.errors import BadInputError, LimitExceededError
from ml.imaging.ingest import FRAMES_NAME
from ml.imaging.results import SlideInspection, VideoInspection
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from ml.imaging.videos.frame_table_file import save_frame_table
from ml.imaging.videos.video import probe_video
from ml.types import DisplayGeometry, no_progress
from portal.archive import inspection
from portal.archive.models import Case, Slide
from portal.archive.services.uploads import upload_receive
from portal.archive.storage import files as storage
from portal.archive.tiles.reading import plane_of, tile_read
from portal.core.errors import InvalidInputError
from portal.labs.models import User
from tests.ml.imaging.conftest import tiff_bytes
from tests.ml.imaging.multi_file import write_mrxs, zipped
from tests.portal.archive.support import picture, run_job

MIB = 1024**2
SLIDE = asdict(
    SlideInspection(
        kind="slide",
        width_px=1,
        height_px=1,
        mpp_x=None,
        mpp_y=None,
        vendor="",
        objective_power=None,
        properties={},
        levels=(),
        has_icc_profile=False,
        thumbnail="t.jpg",
        pixels=None,
    )
)
A_VIDEO = VideoInspection(
    kind="video",
    geometry=DisplayGeometry(160, 120),
    codec="h264",
    container="mp4",
    frame_count=10,
    duration_s=0.4,
    fps=25.0,
    time_base_s=0.04,
    browser_playable=True,
    warnings=(),
    frames="frames.npz",
    poster="p.jpg",
)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Real children; the list names what each was started for."""
    started: list[str] = []

    def run(target: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        started.append(target)
        return run_limited(target, *arguments, **options)

    monkeypatch.setattr(inspection, "run_limited", run)
    return started


def _with_enormous_claims(path: Path) -> Path:
    """200 MB, mostly a hole, whose two lists of tiles are its own bytes, one by one."""
    count = 190 * MIB
    path.write_bytes(
        tiff_bytes([
            (256, 4, 1, 512), (257, 4, 1, 512), (322, 3, 1, 256), (323, 3, 1, 256),
            (324, 1, count, 4096), (325, 1, count, 4096),
        ])
    )  # fmt: skip
    with path.open("r+b") as file:
        file.truncate(200 * MIB)
    return path


def test_a_tiff_with_enormous_claims_needs_little_memory_in_the_web_process(
    case: Case, annotator: User, tmp_path: Path, children: list[str]
) -> None:
    path = _with_enormous_claims(tmp_path / "claims.tif")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with path.open("rb") as file, pytest.raises(InvalidInputError, match="tag 324"):
        upload_receive(case=case, file=file, filename="claims.tif", user=annotator)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 64 * 1024
    assert children == ["ml.imaging.formats.sniff:sniff_file"]


@pytest.mark.slow
def test_an_arriving_file_is_looked_at_once_and_in_a_child(
    case: Case, receive: Any, children: list[str], settings: Any
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    received = receive(case, picture(), "a.png")
    assert children == ["ml.imaging.formats.sniff:sniff_file"]
    run_job(received.job)
    assert children[1:] == [
        "ml.imaging.deidentification.single_file:deidentify",
        "ml.imaging.ingest:inspect_slide",
        "ml.imaging.phi_detection.detection:detect_in_slide",
    ]
    assert Slide.objects.get().state == "ready"


@pytest.mark.slow
def test_a_text_naming_other_files_is_refused_on_arrival(
    case: Case, annotator: User, children: list[str]
) -> None:
    index = b"[Virtual Microscope Specimen]\nNoLayers=1\nImageFile=../../../../etc/passwd\n"
    with pytest.raises(InvalidInputError, match="VMS or VMU"):
        upload_receive(case=case, file=io.BytesIO(index), filename="a.vms", user=annotator)
    with pytest.raises(InvalidInputError, match="text"):
        upload_receive(case=case, file=io.BytesIO(b"[A]\nB=1\n"), filename="a", user=annotator)


def test_the_preview_of_an_mrxs_slide_is_not_taken_for_the_slide(
    case: Case, annotator: User, tmp_path: Path, children: list[str]
) -> None:
    without_folder = write_mrxs(tmp_path)
    with (
        without_folder.open("rb") as file,
        pytest.raises(InvalidInputError, match="Slide"),
    ):
        upload_receive(case=case, file=file, filename="Slide.MRXS", user=annotator)


@pytest.mark.slow
def test_a_slide_of_several_files_arrives_as_one_archive(
    case: Case, receive: Any, tmp_path: Path, children: list[str], annotator: User
) -> None:
    write_mrxs(tmp_path / "from")
    received = receive(case, zipped(tmp_path / "from", tmp_path / "slide.zip"), "slide.zip")
    assert run_job(received.job).state == "succeeded"
    slide = Slide.objects.get()
    assert slide.vendor == "mirax"
    assert slide.canvas is not None
    assert slide.canvas.content_hash == slide.asset.sha256
    pixels = storage.resolve(slide.canvas.pixels_path)
    assert pixels == storage.derived_folder(slide.pk) / "set" / "slide.mrxs"
    assert {path.name for path in pixels.parent.iterdir()} == {"slide", "slide.mrxs"}
    assert tile_read(plane_of(slide.canvas), 0, 0, 0)[:2] == b"\xff\xd8"


def test_a_set_that_names_other_files_fails_with_the_reason(
    case: Case, receive: Any, tmp_path: Path, children: list[str]
) -> None:
    write_mrxs(tmp_path / "from", data="../../../../assets/x")
    received = receive(case, zipped(tmp_path / "from", tmp_path / "slide.zip"), "slide.zip")
    job = run_job(received.job)
    assert (job.state, job.error_code) == ("failed", "unsupported-format")
    assert "names files outside its own folder" in job.error_message
    assert not storage.derived_folder(received.item.pk).exists()


def test_a_dicom_slide_must_be_the_only_one_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader takes all files of a folder that claim to be of the same series."""
    shared = tmp_path / "assets"
    shared.mkdir()
    uid = b"1.2.840.10008.5.1.4.1.1.77.1.6"
    for name in ("mine", "theirs"):
        (shared / name).write_bytes(bytes(128) + b"DICM" + uid)
    folder = tmp_path / "derived"
    folder.mkdir()
    seen: list[list[str]] = []

    def run(target: str, arguments: dict[str, str], *, reads: Any, **_: Any) -> dict[str, Any]:
        assert reads == (Path(arguments["path"]).parent,)
        seen.append([path.name for path in Path(arguments["path"]).parent.iterdir()])
        return SLIDE | {"pixels": None}

    monkeypatch.setattr(inspection, "run_limited", run)
    inspection_result = inspection.slide_inspect(shared / "mine", folder, progress=no_progress)
    assert seen == [["slide.dcm"]]
    assert [path.name for path in (folder / inspection_result.pixels).parent.iterdir()] == [
        "slide.dcm"
    ]
    assert (folder / inspection_result.pixels).read_bytes() == (shared / "mine").read_bytes()


@pytest.mark.slow
def test_a_rendition_is_made_in_a_child(
    case: Case, receive: Any, odd_video_file: Path, children: list[str], settings: Any
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    received = receive(case, odd_video_file, "a.avi")
    run_job(received.job)
    assert children[1:] == [
        "ml.imaging.deidentification.single_file:deidentify",
        "ml.imaging.ingest:inspect_video",
        "ml.imaging.phi_detection.detection:detect_in_video",
        "ml.imaging.ingest:make_rendition",
    ]
    received.item.refresh_from_db()
    assert received.item.media_path.endswith("rendition.mp4")


@pytest.mark.slow
def test_a_rendition_obeys_the_limits_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames of 16 megapixels: decoded one by one, but the encoder keeps many."""
    path = tmp_path / "large.avi"
    with av.open(str(path), "w") as target:
        stream = target.add_stream("mjpeg", rate=25)
        stream.width = stream.height = 4096
        stream.pix_fmt = "yuvj420p"
        grey = np.full((4096 * 3 // 2, 4096), 128, np.uint8)
        frame = av.VideoFrame.from_ndarray(grey, format="yuv420p").reformat(format="yuvj420p")
        for n in range(20):
            frame.pts = n
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    monkeypatch.setattr(inspection, "_rendition_limits", lambda *_: Limits(memory_bytes=450 * MIB))
    out = tmp_path / "out"
    out.mkdir()
    save_frame_table(probe_video(path).frames, out / FRAMES_NAME)
    with pytest.raises(LimitExceededError):
        inspection.rendition_make(path, out, progress=no_progress, inspected=Mock(pixels=None))
    assert [file.name for file in out.iterdir()] == [FRAMES_NAME]


def test_a_rendition_gets_time_and_bytes_as_the_video_has_frames(odd_video_file: Path) -> None:
    hour = replace(A_VIDEO, frame_count=90_000, geometry=DisplayGeometry(1920, 1080))
    short = replace(A_VIDEO, frame_count=10, geometry=DisplayGeometry(160, 120))
    long_limits = inspection._rendition_limits(odd_video_file, hour)
    limits = inspection._rendition_limits(odd_video_file, short)
    assert limits.cpu_s == 1_800
    assert long_limits.cpu_s > 10 * 3_600
    assert limits.file_bytes < 1.1 * 1024**3
    assert limits.memory_bytes == inspection.INSPECT_LIMITS.memory_bytes


@pytest.mark.parametrize("name", ["../../assets/x", "/etc/passwd", "a/../../b", ""])
def test_a_name_that_leaves_the_folder_is_not_believed(name: str) -> None:
    for parse, result, key in (
        (inspection._slide, SLIDE, "thumbnail"),
        (inspection._slide, SLIDE, "pixels"),
        (inspection._video, asdict(A_VIDEO), "frames"),
        (inspection._video, asdict(A_VIDEO), "poster"),
        (inspection._rendition, {"rendition": "r", "offset_pts": 0}, "rendition"),
    ):
        parse(result)
        with pytest.raises(ValueError, match="outside"):
            parse(result | {key: name})


def test_a_description_of_another_shape_is_not_believed() -> None:
    with pytest.raises(BadInputError, match=r"slide\.width_px: .*int.*'9'"):
        inspection._slide(SLIDE | {"width_px": "9"})
    with pytest.raises(BadInputError, match=r"slide\.levels\[0\]: .*'tiles'"):
        inspection._slide(SLIDE | {"levels": [{"tiles": 1}]})


def test_the_web_process_loads_no_decoder_to_receive_a_file() -> None:
    """Proved in a fresh process: what looks at arriving files imports neither reader."""
    code = (
        "import sys, ml.imaging.formats.sniff, ml.imaging.sandbox.parent;"
        "print([m for m in ('openslide', 'pyvips', 'av', 'PIL') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

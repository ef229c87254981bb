"""Findings of the child process in a file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.config import config_from_dict
from ml.errors import CorruptFileError
from ml.imaging.phi_detection.detection import (
    FRAME_SIDE_PX,
    MAX_FINDINGS,
    detect_in_slide,
    detect_in_video,
    is_inspected_by_key_frames,
    text_of_frames,
)
from ml.imaging.phi_detection.evidence_image import evidence
from ml.imaging.phi_detection.faces import FaceBox
from ml.imaging.phi_detection.identifiers import Vocabulary
from ml.imaging.results import PixelFinding, PixelInspection
from ml.imaging.videos.frame_table_file import save_frame_table
from ml.imaging.videos.video import probe_video
from ml.types import ImageU8
from tests.ml.imaging.phi_detection.support import named, tissue, write_frames


def still(folder: Path, image: ImageU8) -> str:
    path = folder / "still.png"
    Image.fromarray(image).save(path)
    return str(path)


def inspect_video(path: Path, folder: Path) -> PixelInspection:
    save_frame_table(probe_video(path).frames, folder / "frames.npz")
    report = detect_in_video(
        path=str(path),
        out_dir=str(folder),
        frames=str(folder / "frames.npz"),
        is_long=False,
        config={"faces": True, "text": True},
    )
    return config_from_dict(PixelInspection, report)


@pytest.mark.slow
def test_text_is_reported_despite_many_faces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faces = [FaceBox(0.01 * n, 0.1, 0.1, 0.1) for n in range(MAX_FINDINGS + 5)]
    monkeypatch.setattr("ml.imaging.phi_detection.detection.face_boxes", lambda _: faces)
    report = detect_in_slide(
        path=still(tmp_path, named(tissue())),
        out_dir=str(tmp_path),
        config={"faces": True, "text": True},
    )
    assert len(report["findings"]) == MAX_FINDINGS
    assert {finding["kind"] for finding in report["findings"][:2]} == {"face", "date"}


def test_a_still_with_a_name_has_evidence(tmp_path: Path) -> None:
    path = still(tmp_path, named(tissue()))
    report = detect_in_slide(path=path, out_dir=str(tmp_path), config={"faces": True, "text": True})
    inspection = config_from_dict(PixelInspection, report)
    assert {finding.kind for finding in inspection.findings} == {"date"}
    assert "Jane Doe 12/03/1961" in inspection.findings[0].text
    assert inspection.findings[0].at_s is None
    assert inspection.picture is not None
    with Image.open(tmp_path / inspection.picture) as picture:
        assert picture.format == "JPEG"
        assert picture.width == 640
    assert not detect_in_slide(
        path=path, out_dir=str(tmp_path), config={"faces": True, "text": False}
    )["findings"]


def test_a_clean_still_has_no_findings_and_no_evidence(tmp_path: Path) -> None:
    path = still(tmp_path, tissue())
    report = detect_in_slide(path=path, out_dir=str(tmp_path), config={"faces": True, "text": True})
    assert report == {"findings": (), "picture": None}
    assert [item.name for item in tmp_path.iterdir()] == ["still.png"]


@pytest.mark.slow
def test_text_over_all_frames_of_a_video_has_no_time(tmp_path: Path) -> None:
    frames = [named(tissue(seed=seed)) for seed in range(4)]
    inspection = inspect_video(write_frames(tmp_path / "v.mp4", frames), tmp_path)
    assert {(finding.kind, finding.at_s) for finding in inspection.findings} == {("date", None)}


@pytest.mark.slow
def test_momentary_text_and_frames_outside_the_body_have_a_time(tmp_path: Path) -> None:
    frames = [tissue(seed=seed) for seed in range(8)]
    frames[3] = named(frames[3])
    frames[7] = np.full_like(frames[0], 128)
    inspection = inspect_video(write_frames(tmp_path / "v.mp4", frames), tmp_path)
    times = {finding.kind: finding.at_s for finding in reversed(inspection.findings)}
    assert times["date"] == pytest.approx(3 / 25, abs=0.01)
    assert times["outside_body"] == pytest.approx(7 / 25, abs=0.01)


@pytest.mark.slow
def test_frames_of_another_size_are_inspected(tmp_path: Path) -> None:
    """A recorder that changes its resolution writes one stream of two sizes."""
    first = [tissue(seed=seed) for seed in range(4)]
    other = [named(tissue(800, 600, seed=seed)) for seed in range(4)]
    path = write_frames(tmp_path / "a.ts", first)
    rest = write_frames(tmp_path / "b.ts", other, first=4)
    path.write_bytes(path.read_bytes() + rest.read_bytes())
    inspection = inspect_video(path, tmp_path)
    (text,) = [finding for finding in inspection.findings if finding.kind == "date"]
    assert text.at_s == pytest.approx(4 / 25, abs=0.05), "it does not stand over the whole video"
    with Image.open(tmp_path / "evidence.jpg") as picture:
        assert picture.height > 480  # 640 px wide of 4:3, and the place below it


@pytest.mark.slow
def test_a_running_clock_is_one_finding_and_identifying_with_a_date() -> None:
    frames = [named(tissue(seed=n), f"14:24:0{n}", (30, 200)) for n in range(3)]
    ((line, kind, numbers),) = text_of_frames(frames, Vocabulary())
    assert (kind, numbers) == ("other", [0, 1, 2])
    dated = [*frames[:2], named(frames[2])]
    numbers_by_kind = {kind: numbers for _, kind, numbers in text_of_frames(dated, Vocabulary())}
    assert numbers_by_kind == {"time": [0, 1, 2], "date": [2]}
    assert line.text == "14:24:00"


def test_a_page_of_text_is_reported_in_part(tmp_path: Path) -> None:
    page = np.full((1000, 900, 3), 255, np.uint8)
    for row in range(12):
        for column in range(3):
            page = 255 - named(255 - page, "Jane Doe", (30 + 290 * column, 80 * row + 40))
    report = detect_in_slide(
        path=still(tmp_path, page), out_dir=str(tmp_path), config={"faces": False, "text": True}
    )
    assert 10 < len(report["findings"]) <= MAX_FINDINGS


def test_a_damaged_video_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    table = probe_video(write_frames(path, [tissue()] * 4)).frames
    save_frame_table(table, tmp_path / "frames.npz")
    path.write_bytes(b"\0" * 4000)
    with pytest.raises(CorruptFileError):
        detect_in_video(
            path=str(path), out_dir=str(tmp_path), frames=str(tmp_path / "frames.npz"),
            is_long=False, config={"faces": True, "text": True},
        )  # fmt: skip


def test_the_amount_of_inspected_pixels_is_limited() -> None:
    assert not is_inspected_by_key_frames(1_500, 1920 * 1080)
    assert is_inspected_by_key_frames(1_501, 16)
    assert is_inspected_by_key_frames(400, 8_192 * 8_192)
    assert FRAME_SIDE_PX < 8_192


@pytest.mark.parametrize("shape", [(1, 4000, 3), (4000, 1, 3), (9, 9, 3)])
def test_evidence_of_an_odd_picture_stays_small(shape: tuple[int, int, int]) -> None:
    places = [
        PixelFinding("date", 0.99, 0.99, 0.01, 0.01),
        PixelFinding("outside_body", 0, 0, 1, 1, at_s=1),
    ]
    image = np.zeros(shape, np.uint8)
    with Image.open(io.BytesIO(evidence([(place, image) for place in places]))) as picture:
        assert picture.width <= 640
        assert picture.height <= 1_300

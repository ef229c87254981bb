"""Redaction: boxes are black in every level and frame, and the rest of the file is gone."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from ml.errors import CorruptFileError, ShapeError, UnknownNameError
from ml.imaging.phi_detection.text import read_text
from ml.imaging.picture_boxes import PREVIEW_NAME, REDACTED_NAME, pixel_boxes
from ml.imaging.redaction.preview import preview
from ml.imaging.redaction.redact import redact_slide, redact_still, redact_video
from ml.imaging.results import PictureBox
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.stills import open_still
from ml.imaging.videos.containers import decode_frames, open_video
from ml.imaging.videos.frame_table_file import save_frame_table
from ml.imaging.videos.video import probe_video
from tests.ml.imaging.deidentification.support import SECRET, write_svs
from tests.ml.imaging.phi_detection.support import named, tissue, write_frames

LINE = [0.03, 0.03, 0.6, 0.12]
"""Box around the text of ``named``, in a picture of 640 x 400 px: (19, 12) to (403, 60)."""


def words(image: Any) -> str:
    return " ".join(line.text for line in read_text(np.ascontiguousarray(image)))


def still(path: Path, **options: Any) -> Path:
    Image.fromarray(named(tissue())).save(path, **options)
    return path


def box_of(image: Any) -> Any:
    """Pixels of ``LINE`` in a picture of the same shape."""
    height, width = image.shape[:2]
    x, y, wide, high = LINE
    rows = slice(int(y * height), int((y + high) * height))
    return image[rows, int(x * width) : int((x + wide) * width)]


def test_a_box_is_enlarged_to_whole_blocks_and_cut_at_the_edges() -> None:
    boxes = [PictureBox(0.1, 0.1, 0.1, 0.1), PictureBox(-1.0, 0.9, 3.0, 3.0)]
    assert pixel_boxes(boxes, (200, 100)) == [(16, 0, 48, 32), (0, 80, 200, 100)]


@pytest.mark.parametrize(
    "box", [(0, 0, 0, 0.5), (1.2, 0, 0.5, 0.5), (0, 0, -1, 1), (float("nan"), 0, 1, 1)]
)
def test_a_box_without_area_in_the_picture_is_refused(box: tuple[float, ...]) -> None:
    with pytest.raises(ShapeError, match="box"):
        pixel_boxes([PictureBox(*box)], (100, 100))


@pytest.mark.parametrize(
    ("name", "expected", "tolerance"),
    [
        ("a.png", "PNG", 0),
        ("a.jpg", "JPEG", 6),
        ("a.webp", "WEBP", 0),
        ("a.tif", "TIFF", 0),
        ("a.bmp", "PNG", 0),
        ("a.jp2", "PNG", 0),
    ],
)
def test_a_still_is_black_inside_its_boxes_and_unchanged_outside(
    tmp_path: Path, name: str, expected: str, tolerance: int
) -> None:
    source = still(tmp_path / name, **({"lossless": True} if name == "a.webp" else {}))
    before = open_still(source).numpy()
    assert "12/03" in words(before)
    redact_still(path=str(source), out_dir=str(tmp_path), boxes=[LINE])
    made = tmp_path / REDACTED_NAME
    with Image.open(made) as image:
        assert image.format == expected
    after = open_still(made).numpy()
    assert after.shape == before.shape
    assert box_of(after).max() == 0
    assert words(after) == ""
    rest = np.abs(after.astype(int) - before)[64:]
    assert rest.mean() <= tolerance / 4 and rest.max() <= 4 * tolerance


def test_a_rotated_still_is_saved_upright_without_names_in_metadata(
    tmp_path: Path,
) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, SECRET  # to be turned clockwise; description
    source = tmp_path / "turned.jpg"
    upright = named(tissue())
    Image.fromarray(np.rot90(upright)).save(source, exif=exif, comment=SECRET, quality=95)
    redact_still(path=str(source), out_dir=str(tmp_path), boxes=[LINE])
    data = (tmp_path / REDACTED_NAME).read_bytes()
    assert SECRET.encode() not in data
    after = np.asarray(Image.open(io.BytesIO(data)))
    assert after.shape == upright.shape
    assert box_of(after).max() == 0
    assert np.abs(after.astype(int) - upright)[64:].mean() < 4


def test_sixteen_bit_values_outside_the_boxes_are_unchanged(tmp_path: Path) -> None:
    values = np.arange(64 * 96, dtype=np.uint16).reshape(64, 96) * 10
    source = tmp_path / "deep.png"
    cv2.imwrite(str(source), values)
    redact_still(path=str(source), out_dir=str(tmp_path), boxes=[[0, 0, 0.5, 0.25]])
    after = cv2.imdecode(np.fromfile(tmp_path / REDACTED_NAME, np.uint8), cv2.IMREAD_UNCHANGED)
    assert after.dtype == np.uint16
    assert after[:16, :48].max() == 0
    assert (after[16:] == values[16:]).all()


def test_a_damaged_still_leaves_no_file(tmp_path: Path) -> None:
    source = still(tmp_path / "a.png")
    source.write_bytes(source.read_bytes()[:20_000])
    with pytest.raises(CorruptFileError):
        redact_still(path=str(source), out_dir=str(tmp_path), boxes=[LINE])
    assert not (tmp_path / REDACTED_NAME).exists()


@pytest.mark.slow
def test_a_slide_is_black_in_every_level_and_has_no_label(tmp_path: Path) -> None:
    level = named(tissue(1536, 1024), xy=(200, 300))
    source = write_svs(tmp_path / "a.svs", level=level)
    assert SECRET.encode() in source.read_bytes()
    box = [200 / 1536, 270 / 1024, 320 / 1536, 50 / 1024]
    redact_slide(path=str(source), out_dir=str(tmp_path), boxes=[box])
    made = tmp_path / REDACTED_NAME
    assert SECRET.encode() not in made.read_bytes()
    with open_slide(made) as slide:
        assert (slide.info.width_px, slide.info.height_px) == (1536, 1024)
        assert slide.info.mpp_x == pytest.approx(0.5, rel=1e-3)
        assert len(slide.stored) >= 3
        for number, stored in enumerate(slide.stored):
            scale = stored.downsample
            pixels = slide.read_level(number, (0, 0), (stored.width_px, stored.height_px))
            left, top = int(192 / scale) + 1, int(256 / scale) + 1
            right, bottom = int(528 / scale) - 1, int(320 / scale) - 1
            assert pixels[top:bottom, left:right].max() <= 8, number
            assert not any(letter.isalnum() for letter in words(pixels)), number
        first = slide.read_level(0, (0, 400), (1536, 600))
        assert np.abs(first.astype(int) - level[400:1000]).mean() < 4
    shown = preview(path=str(made), out_dir=str(tmp_path))
    assert shown == {"kind": "slide", "images": []}


def video_with_gaps(path: Path) -> Path:
    """Forty frames with text, at uneven times in a time base of 1/90000."""
    import av

    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 640, 400, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 90_000)
        for number in range(40):
            frame = av.VideoFrame.from_ndarray(named(tissue(seed=number)), format="rgb24")
            frame.pts, frame.time_base = number * 3_600 + number**2 * 7, Fraction(1, 90_000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def redacted_video(source: Path, folder: Path) -> Path:
    save_frame_table(probe_video(source).frames, folder / "frames.npz")
    frames = str(folder / "frames.npz")
    redact_video(path=str(source), out_dir=str(folder), frames=frames, boxes=[LINE])
    return folder / REDACTED_NAME


@pytest.mark.slow
def test_a_video_is_black_in_every_frame_and_all_its_frames_have_their_times(
    tmp_path: Path,
) -> None:
    source = video_with_gaps(tmp_path / "a.mp4")
    before = probe_video(source).frames
    made = redacted_video(source, tmp_path)
    after = probe_video(made).frames
    assert len(after) == len(before) == 40
    assert [Fraction(int(pts)) * Fraction(1, 90_000) for pts in before.pts] == [
        Fraction(int(pts)) * Fraction(after.time_base_s).limit_denominator(10**6)
        for pts in after.pts
    ]
    count = 0
    with open_video(made) as (container, stream):
        for _, frame in decode_frames(container, stream):
            luma = frame.to_ndarray()[:400]
            assert np.ptp(box_of(luma)[4:-4, 4:-4].astype(int)) <= 2, count
            assert abs(int(box_of(luma)[20, 100]) - 16) <= 2
            if count % 13 == 0:
                assert words(frame.to_ndarray(format="rgb24")) == ""
            count += 1
    assert count == 40


def test_titles_and_sound_of_a_video_are_removed(tmp_path: Path) -> None:
    import av

    titled = tmp_path / "titled.mkv"
    with av.open(str(titled), "w") as container:
        container.metadata["title"] = SECRET
        stream: Any = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 640, 400, "yuv420p"
        sound: Any = container.add_stream("aac", rate=8_000, layout="mono")
        for number in range(12):
            frame = av.VideoFrame.from_ndarray(named(tissue(seed=number)), format="rgb24")
            container.mux(stream.encode(frame))
        noise = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        noise.sample_rate = 8_000
        container.mux([*stream.encode(None), *sound.encode(noise), *sound.encode(None)])
    assert SECRET.encode() in titled.read_bytes()
    made = redacted_video(titled, tmp_path)
    assert SECRET.encode() not in made.read_bytes()
    with av.open(str(made)) as container:
        assert [item.type for item in container.streams] == ["video"]
        assert container.streams.video[0].frames == 12


def test_an_error_in_progress_stops_redaction(tmp_path: Path) -> None:
    source = still(tmp_path / "a.png")

    def stop(done: int, total: int, phase: str) -> None:
        raise KeyboardInterrupt(phase)

    with pytest.raises(KeyboardInterrupt, match="redacting"):
        redact_still(path=str(source), out_dir=str(tmp_path), boxes=[LINE], progress=stop)
    assert not (tmp_path / REDACTED_NAME).exists()


def test_the_preview_is_the_still_the_label_or_a_frame(tmp_path: Path) -> None:
    def shown(path: Path, **arguments: Any) -> tuple[Any, Any]:
        result = preview(path=str(path), out_dir=str(tmp_path), **arguments)
        return result, np.asarray(Image.open(tmp_path / PREVIEW_NAME))

    result, picture = shown(still(tmp_path / "a.png"))
    assert (result, picture.shape) == ({"kind": "still", "images": []}, (400, 640, 3))
    slide = write_svs(tmp_path / "a.svs", level=tissue(1536, 1024))
    assert shown(slide)[0]["images"] == ["label", "macro"]
    assert shown(slide, image="label")[1].shape == (40, 30, 3)
    with pytest.raises(UnknownNameError):
        shown(tmp_path / "a.png", image="label")
    frames = [np.full((96, 128, 3), 5 * number, np.uint8) for number in range(40)]
    video = write_frames(tmp_path / "v.mp4", frames)
    result, first = shown(video)
    assert result["kind"] == "video"
    middle, last = shown(video, at=0.5)[1], shown(video, at=1.0)[1]
    assert abs(int(first.mean())) < 6
    assert abs(int(middle.mean()) - 100) < 12
    assert abs(int(last.mean()) - 195) < 8

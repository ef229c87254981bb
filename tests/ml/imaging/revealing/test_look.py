"""What the child process answers of a file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.config import config_from_dict
from ml.errors import CorruptFileError
from ml.imaging.inspections import LookedThrough, Revealing
from ml.imaging.revealing.evidence import evidence
from ml.imaging.revealing.faces import FaceBox
from ml.imaging.revealing.look import (
    FRAME_SIDE_PX,
    MOST_FOUND,
    is_looked_at_by_key_frames,
    look_at_slide,
    look_at_video,
    text_of_frames,
)
from ml.imaging.videos import probe_video, save_frame_table
from ml.types import ImageU8
from tests.ml.imaging.revealing.support import named, tissue, write_frames


def still(folder: Path, image: ImageU8) -> str:
    path = folder / "still.png"
    Image.fromarray(image).save(path)
    return str(path)


def seen_in_video(path: Path, folder: Path) -> LookedThrough:
    save_frame_table(probe_video(path).frames, folder / "frames.npz")
    told = look_at_video(
        path=str(path),
        out_dir=str(folder),
        frames=str(folder / "frames.npz"),
        is_long=False,
        faces=True,
        text=True,
    )
    return config_from_dict(LookedThrough, told)


def test_many_faces_do_not_push_text_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faces = [FaceBox(0.01 * n, 0.1, 0.1, 0.1) for n in range(MOST_FOUND + 5)]
    monkeypatch.setattr("ml.imaging.revealing.look.face_boxes", lambda _: faces)
    told = look_at_slide(
        path=still(tmp_path, named(tissue())), out_dir=str(tmp_path), faces=True, text=True
    )
    assert len(told["found"]) == MOST_FOUND
    assert [one["kind"] for one in told["found"][:2]] == ["face", "text"]


def test_a_still_with_a_name_has_a_picture_that_shows_it(tmp_path: Path) -> None:
    path = still(tmp_path, named(tissue()))
    told = look_at_slide(path=path, out_dir=str(tmp_path), faces=True, text=True)
    seen = config_from_dict(LookedThrough, told)
    assert {one.kind for one in seen.found} == {"text"}
    assert seen.found[0].at_s is None
    assert seen.picture is not None
    with Image.open(tmp_path / seen.picture) as picture:
        assert picture.format == "JPEG"
        assert picture.width == 640
    assert not look_at_slide(path=path, out_dir=str(tmp_path), faces=True, text=False)["found"]


def test_of_a_clean_still_nothing_is_told_or_written(tmp_path: Path) -> None:
    path = still(tmp_path, tissue())
    told = look_at_slide(path=path, out_dir=str(tmp_path), faces=True, text=True)
    assert told == {"found": (), "picture": None}
    assert [one.name for one in tmp_path.iterdir()] == ["still.png"]


def test_text_that_stands_over_a_video_has_no_time(tmp_path: Path) -> None:
    frames = [named(tissue(seed=seed)) for seed in range(12)]
    seen = seen_in_video(write_frames(tmp_path / "v.mp4", frames), tmp_path)
    assert {(one.kind, one.at_s) for one in seen.found} == {("text", None)}


def test_text_of_a_moment_and_frames_outside_have_one(tmp_path: Path) -> None:
    frames = [tissue(seed=seed) for seed in range(21)]
    for at in (9, 10):
        frames[at] = named(frames[at])
    grey = np.full_like(frames[0], 128)
    frames[19:] = [grey] * 2
    seen = seen_in_video(write_frames(tmp_path / "v.mp4", frames), tmp_path)
    times = {one.kind: one.at_s for one in reversed(seen.found)}
    assert times["text"] == pytest.approx(9 / 25, abs=0.01)
    assert times["outside"] == pytest.approx(19 / 25, abs=0.01)


def test_frames_of_another_size_are_looked_at_too(tmp_path: Path) -> None:
    """A recorder that changes its resolution writes one stream of two sizes."""
    first = [tissue(seed=seed) for seed in range(12)]
    other = [named(tissue(800, 600, seed=seed)) for seed in range(12)]
    path = write_frames(tmp_path / "a.ts", first)
    rest = write_frames(tmp_path / "b.ts", other, first=12)
    path.write_bytes(path.read_bytes() + rest.read_bytes())
    seen = seen_in_video(path, tmp_path)
    (text,) = [one for one in seen.found if one.kind == "text"]
    assert text.at_s == pytest.approx(12 / 25, abs=0.05), "it does not stand over the whole video"
    with Image.open(tmp_path / "evidence.jpg") as picture:
        assert picture.height > 480  # 640 px wide of 4:3, and the place below it


def test_a_single_frame_of_another_size_is_judged_as_one_of_a_moment(tmp_path: Path) -> None:
    frames = [tissue(seed=seed) for seed in range(6)]
    sized = [*frames, named(tissue(800, 600)), *frames]
    found = text_of_frames(sized)
    assert [at for _, at in found] == [6]
    assert text_of_frames([named(one) for one in frames])[0][1] is None


def test_a_page_of_text_is_told_in_part(tmp_path: Path) -> None:
    page = np.full((1000, 900, 3), 255, np.uint8)
    for row in range(12):
        for column in range(3):
            page = 255 - named(255 - page, "Jane Doe", (30 + 290 * column, 80 * row + 40))
    told = look_at_slide(path=still(tmp_path, page), out_dir=str(tmp_path), faces=False, text=True)
    assert 10 < len(told["found"]) <= MOST_FOUND


def test_a_damaged_video_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    table = probe_video(write_frames(path, [tissue()] * 4)).frames
    save_frame_table(table, tmp_path / "frames.npz")
    path.write_bytes(b"\0" * 4000)
    with pytest.raises(CorruptFileError):
        look_at_video(
            path=str(path), out_dir=str(tmp_path), frames=str(tmp_path / "frames.npz"),
            is_long=False, faces=True, text=True,
        )  # fmt: skip


def test_work_is_bounded() -> None:
    assert not is_looked_at_by_key_frames(1_500, 1920 * 1080)
    assert is_looked_at_by_key_frames(1_501, 16)
    assert is_looked_at_by_key_frames(400, 8_192 * 8_192)
    assert FRAME_SIDE_PX < 8_192


@pytest.mark.parametrize("shape", [(1, 4000, 3), (4000, 1, 3), (9, 9, 3)])
def test_evidence_of_an_odd_picture_stays_small(shape: tuple[int, int, int]) -> None:
    places = [Revealing("text", 0.99, 0.99, 0.01, 0.01), Revealing("outside", 0, 0, 1, 1, at_s=1)]
    image = np.zeros(shape, np.uint8)
    with Image.open(io.BytesIO(evidence([(one, image) for one in places]))) as picture:
        assert picture.width <= 640
        assert picture.height <= 1_300

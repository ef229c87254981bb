"""The whole engine: exact truth, reasons, idempotence, cancelling, bad input."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest
import tifffile

from ml.errors import BadInputError, CancelledError, MosaicError, ShapeError, UnknownNameError
from ml.evaluation.mosaic.truth import score_against_truth
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.sources import open_source
from ml.mosaic.gaps import NothingRegisteredError
from ml.mosaic.manifest import read_manifest
from ml.mosaic.result import LAYER_NAMES, MosaicResult

if TYPE_CHECKING:
    from tests.ml.mosaic.conftest import Sweep

FILES = sorted(
    ["mosaic.json", "mosaic.tif", "preview.jpg"]
    + [f"layer-{name}{suffix}" for name in LAYER_NAMES for suffix in (".png", ".tif")]
)


@pytest.fixture(scope="module")
def built(sweep: Sweep, tmp_path_factory: pytest.TempPathFactory) -> MosaicResult:
    return build_mosaic(sweep.frames, tmp_path_factory.mktemp("m") / "out")


def test_known_motion_is_recovered_within_a_pixel(built: MosaicResult, sweep: Sweep) -> None:
    assert built.registered_count == 12
    score = score_against_truth(built, sweep.truth, size_px=(200, 200))
    assert score.mean_px < 1.0
    assert score.max_px < 2.5


def test_the_mosaic_shows_the_scene(built: MosaicResult, sweep: Sweep) -> None:
    with tifffile.TiffFile(built.path) as tiff:
        pixels = tiff.pages[0].asarray()
        assert tiff.pages[0].is_tiled
    assert pixels.shape == (built.height_px, built.width_px, 3)
    frame = built.frames[6]
    assert frame.H_mosaic_from_frame is not None
    seen = cv2.warpPerspective(
        pixels,
        frame.H_mosaic_from_frame,
        (200, 200),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
    )
    middle = (slice(50, 150), slice(50, 150), 1)
    assert np.corrcoef(seen[middle].ravel(), sweep.frames[6][middle].ravel())[0, 1] > 0.95


def test_the_manifest_round_trips_to_the_result(built: MosaicResult) -> None:
    again = read_manifest(built.manifest.parent)
    assert (again.width_px, again.height_px, again.registered_count) == (
        built.width_px,
        built.height_px,
        12,
    )
    for ours, theirs in zip(built.frames, again.frames, strict=True):
        assert (ours.index, ours.pts, ours.status) == (theirs.index, theirs.pts, theirs.status)
        np.testing.assert_allclose(ours.H_mosaic_from_frame, theirs.H_mosaic_from_frame)


@pytest.mark.slow
def test_running_twice_gives_the_same_bytes_and_no_other_files(
    built: MosaicResult, sweep: Sweep, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in built.manifest.parent.iterdir()}
    assert sorted(before) == FILES
    shutil.copytree(built.manifest.parent, tmp_path / "out")
    build_mosaic(sweep.frames, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("phase", ["survey", "register", "align", "blend", "write"])
def test_a_cancelled_build_leaves_no_files(phase: str, sweep: Sweep, tmp_path: Path) -> None:
    def stop(done: int, total: int, at: str) -> None:
        if at == phase:
            raise CancelledError("stopped by the user")

    with pytest.raises(CancelledError):
        build_mosaic(sweep.frames[:4], tmp_path / "out", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_does_not_change_existing_files(sweep: Sweep, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_mosaic(sweep.frames[:3], out)
    before = {name: (out / name).read_bytes() for name in FILES}
    with pytest.raises(MosaicError):
        build_mosaic([np.zeros((200, 200, 3), np.uint8)] * 4, out)
    assert before == {name: (out / name).read_bytes() for name in FILES}


def test_every_dropped_frame_has_its_reason(sweep: Sweep, tmp_path: Path) -> None:
    frames = list(sweep.frames)
    frames[2] = cv2.GaussianBlur(frames[2], (0, 0), 7)
    frames[5] = frames[5] // 20
    frames[8] = np.zeros((100, 120, 3), np.uint8)
    frames.append(np.full((200, 200, 3), 255, np.uint8))
    noise = np.random.default_rng(0).integers(0, 255, (50, 50, 3), np.uint8)
    frames.append(cv2.resize(noise, (200, 200), interpolation=cv2.INTER_CUBIC))
    mosaic = build_mosaic(frames, tmp_path / "out")
    dropped = {f.index: (f.status, f.reason) for f in mosaic.frames if f.status != "registered"}
    assert set(dropped) == {2, 5, 8, 12, 13}
    assert dropped[2][0] == "skipped"
    assert "blurred" in dropped[2][1]
    assert "too dark" in dropped[5][1]
    assert dropped[8][1] == "size 120 x 100 differs from 200 x 200 px"
    assert "overexposed" in dropped[12][1]
    assert dropped[13] == ("failed", "too few points agree with the frames around it")
    assert all(f.H_mosaic_from_frame is None for f in mosaic.frames if f.index in dropped)


@pytest.mark.slow
def test_a_cut_in_the_scene_gives_two_mosaics(sweep: Sweep, tmp_path: Path) -> None:
    other = [np.ascontiguousarray(frame[::-1, :, ::-1]) for frame in sweep.frames[:4]]
    mosaic = build_mosaic(sweep.frames[:8] + other, tmp_path / "out")
    assert [f.component for f in mosaic.frames] == [0] * 8 + [1] * 4
    first, second = mosaic.components
    assert (first.registered_count, second.registered_count) == (8, 4)
    assert [(s.first_index, s.last_index) for s in second.spans] == [(8, 11)]
    for component in mosaic.components:
        with tifffile.TiffFile(tmp_path / "out" / component.pyramid) as tiff:
            assert tiff.pages[0].shape == (component.height_px, component.width_px, 3)
        for layer in component.layers:
            png = cv2.imread(str(tmp_path / "out" / layer.png), cv2.IMREAD_UNCHANGED)
            assert png.shape == (layer.height_px, layer.width_px)
    build_mosaic(sweep.frames[:8], tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == FILES, "no stale second mosaic"


def test_a_static_video_becomes_one_view(sweep: Sweep, tmp_path: Path) -> None:
    mosaic = build_mosaic([sweep.frames[0]] * 5, tmp_path / "out")
    assert mosaic.registered_count == 5
    assert abs(mosaic.width_px - 189) < 4


def test_a_folder_with_an_unreadable_image_continues(sweep: Sweep, tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for i, frame in enumerate(sweep.frames[:4]):
        cv2.imwrite(str(folder / f"{i:03d}.png"), frame[:, :, ::-1])
    (folder / "0015.png").write_bytes(b"no image")
    mosaic = build_mosaic(folder, tmp_path / "out")
    assert [f.status for f in mosaic.frames].count("registered") == 4
    assert [f.reason for f in mosaic.frames if f.reason] == ["the frame could not be decoded"]


def test_a_given_mask_bounds_the_visible_area(sweep: Sweep, tmp_path: Path) -> None:
    mask = np.zeros((200, 200), np.uint8)
    mask[40:160, 30:170] = 255
    mosaic = build_mosaic(sweep.frames[:2], tmp_path / "out", mask=mask)
    assert mosaic.height_px < 135
    with pytest.raises(ShapeError, match=r"mask: .*\(200, 200\)"):
        build_mosaic(sweep.frames[:2], tmp_path / "no", mask=mask[:50])
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([np.zeros((64, 64, 3), np.uint8)] * 3, "register: none of 3 frames is usable; too dark"),
        ([np.full((64, 64, 3), 90, np.uint8)] * 3, "none of 3 frames is usable; no structure"),
        ([], "survey: none of 0 frames"),
    ],
    ids=["black", "uniform", "none"],
)
def test_unsuitable_input_raises_an_error(
    frames: list[np.ndarray], text: str, tmp_path: Path
) -> None:
    with pytest.raises(MosaicError, match=text):
        build_mosaic(frames, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_error_contains_the_reason_of_each_frame(tmp_path: Path) -> None:
    black, flat = np.zeros((64, 64, 3), np.uint8), np.full((64, 64, 3), 90, np.uint8)
    with pytest.raises(NothingRegisteredError) as caught:
        build_mosaic([black, black, flat, flat, flat], tmp_path / "out")
    assert str(caught.value).endswith(
        "none of 5 frames is usable; no structure: frames 2 to 4 (3 frames);"
        " too dark: frames 0 to 1 (2 frames)"
    )
    assert [f.reason_code for f in caught.value.frames] == ["dark"] * 2 + ["uniform"] * 3
    assert {f.status for f in caught.value.frames} == {"skipped"}


def test_a_mask_in_a_folder_of_frames_is_not_a_frame(sweep: Sweep, tmp_path: Path) -> None:
    for name, frame in zip(("001.png", "002.png", "mask.png"), sweep.frames, strict=False):
        cv2.imwrite(str(tmp_path / name), frame)
    source = open_source(tmp_path)
    assert source.count == len(list(source.frames())) == 2


def test_a_canvas_over_the_limit_is_refused_with_its_size(sweep: Sweep, tmp_path: Path) -> None:
    with pytest.raises(MosaicError, match=r"\d+ x \d+ px.* 20000 px"):
        build_mosaic(sweep.frames[:2], tmp_path / "out", config=MosaicConfig(max_canvas_px=20_000))


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="nowhere"):
        build_mosaic(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="no image"):
        build_mosaic(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInputError, match="a file"):
        build_mosaic(tmp_path / "empty", tmp_path / "file")
    with pytest.raises(UnknownNameError, match="'spline'"):
        MosaicConfig(motion_model="spline")
    with pytest.raises(BadInputError, match=r"step: .*0"):
        MosaicConfig(step=0)


@pytest.mark.slow
def test_the_fetoscopy_sweep_is_registered_completely(tessera_data: Path, tmp_path: Path) -> None:
    folder = tessera_data / "endoscopy/fetoscopy-anon001/frames"
    mosaic = build_mosaic(
        folder, tmp_path / "out", config=MosaicConfig(step=4, motion_model="affine")
    )
    assert mosaic.registered_count == 25
    assert 800 < mosaic.width_px < 1400

"""Points and polygons between a mosaic and its frames, worked by hand; the manifest and gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ml.errors import BadInputError, CorruptFileError
from ml.mosaic import MosaicFrame, MosaicResult
from ml.mosaic.lookup import (
    frame_outline,
    frames_seeing,
    holds,
    polygon_to_frame,
    polygon_to_mosaic,
)
from ml.mosaic.manifest import read_manifest, to_manifest, write_manifest
from ml.mosaic.report import find_gaps

VIEW = np.array([[0, 0], [100, 0], [100, 80], [0, 80.0]])


def _frame(index: int, shift: float, scale: float = 1.0, **more: object) -> MosaicFrame:
    matrix = np.array([[scale, 0, shift], [0, scale, 0], [0, 0, 1.0]])
    values = {"component": 0, "sharpness": 1.0, "time_s": index / 25, "is_key": True} | more
    return MosaicFrame(index, index * 40, matrix, "registered", **values)  # type: ignore[arg-type]


def _dropped(index: int, code: str) -> MosaicFrame:
    return MosaicFrame(index, 0, None, "skipped", "x", reason_code=code, time_s=index / 25)


def _result(*frames: MosaicFrame) -> MosaicResult:
    here = Path("x")
    return MosaicResult(
        frames,
        here / "mosaic.tif",
        here / "preview.jpg",
        here,
        300,
        80,
        "affine",
        0,
        "0",
        view=VIEW,
    )


def test_frames_that_saw_a_point_come_sharpest_first() -> None:
    result = _result(
        _frame(0, 0),
        _frame(1, 50, sharpness=3.0),
        _frame(2, 150),
        _frame(3, 40, component=1),
        _dropped(4, "blurred"),
    )
    found = frames_seeing(result, (70, 10))
    assert [s.frame.index for s in found] == [1, 0]
    assert found[0].xy_frame == pytest.approx((20, 10))
    assert [s.frame.index for s in frames_seeing(result, (70, 10), component=1)] == [3]
    assert frames_seeing(result, (400, 10)) == ()


def test_a_nearer_frame_shows_the_point_larger() -> None:
    (seen,) = frames_seeing(_result(_frame(0, 0, 0.5)), (20, 10))
    assert seen.scale == pytest.approx(2.0)
    assert seen.xy_frame == pytest.approx((40, 20))


def test_polygons_go_there_and_back() -> None:
    matrix = np.array([[1.1, 0.1, 30], [-0.1, 1.0, 4], [1e-4, 2e-4, 1]])
    frame = replace(_frame(0, 0), H_mosaic_from_frame=matrix)
    polygon = np.array([[10, 10], [60, 12], [40, 50.0]])
    there = polygon_to_mosaic(frame, polygon)
    np.testing.assert_allclose(polygon_to_frame(frame, there), polygon, atol=1e-9)
    x, y, w = matrix @ [10, 10, 1]
    np.testing.assert_allclose(there[0], [x / w, y / w])


def test_the_outline_is_the_view_in_the_mosaic() -> None:
    result = _result(_frame(0, 25))
    np.testing.assert_allclose(frame_outline(result, result.frames[0]), VIEW + np.array([25, 0]))
    with pytest.raises(BadInputError, match="frame 4: expected a registered frame, got skipped"):
        frame_outline(result, _dropped(4, "blurred"))
    with pytest.raises(BadInputError, match="outline of the view"):
        frames_seeing(replace(result, view=None), (0, 0))


def test_a_convex_outline_holds_its_edge_in_either_direction() -> None:
    for outline in (VIEW, VIEW[::-1]):
        assert holds(outline, (100, 40))
        assert not holds(outline, (100.1, 40))


def test_gaps_are_named_by_their_seconds_and_commonest_reason() -> None:
    frames = [
        _frame(0, 0),
        *[_dropped(i, "smoke") for i in range(1, 251)],
        _dropped(251, "blurred"),
    ]
    (gap,) = find_gaps([*frames, _frame(252, 9)])
    assert gap.text == "0:00.0 to 0:10.0 (251 frames): veiled by smoke or water"
    assert (gap.span.first_index, gap.span.last_index, gap.frames) == (1, 251, 251)
    unclocked = [replace(f, time_s=None) for f in (_frame(0, 0), _dropped(1, "dark"))]
    assert find_gaps(unclocked)[0].text == "frame 1 (1 frame): too dark"
    assert find_gaps([_frame(0, 0)]) == ()


def test_the_manifest_reads_back_and_older_ones_as_well(tmp_path: Path) -> None:
    result = _result(_frame(0, 3, covariance=np.eye(3), corner_sigma_px=0.5), _dropped(1, "dark"))
    write_manifest(result, tmp_path)
    again = read_manifest(tmp_path)
    assert to_manifest(again) == to_manifest(result)
    text = (tmp_path / "mosaic.json").read_text()
    (tmp_path / "mosaic.json").write_text(text.replace('"format": 2', '"format": 9'))
    with pytest.raises(CorruptFileError, match="format 9, known are"):
        read_manifest(tmp_path)
    (tmp_path / "mosaic.json").write_text(
        '{"format": 1, "pyramid": "mosaic.tif", "preview": "p.jpg", "width_px": 1, "height_px": 1,'
        ' "model": "affine", "anchor_index": 0, "config_hash": "x", "frames": [{"index": 0,'
        ' "pts": 0, "H_mosaic_from_frame": null, "status": "failed", "reason": "r", "links": 0,'
        ' "error_px": null}]}'
    )
    assert read_manifest(tmp_path).components == ()

"""Key frames of an ROI: what is stored, refused, remembered and exchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portal.annotations.models import Roi, RoiAction
from portal.annotations.services.bulk import RoiStep, rois_change
from portal.annotations.services.exchange import roi_import
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.rois import roi_create, roi_restore, roi_update, version_changes
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import Lab, User
from tests.portal.annotations.conftest import make_canvas, make_video_canvas
from tests.portal.annotations.support import box as rectangle
from tests.portal.annotations.support import exported

pytestmark = pytest.mark.django_db
PTS = [0, 40, 80, 120, 160, 200, 240, 280]


@pytest.fixture
def video_canvas(lab: Lab, storage: Any) -> Canvas:
    return make_video_canvas(lab, pts=PTS)


def box(left: float, top: float, size: float) -> dict[str, Any]:
    return rectangle(left, top, left + size, top + size)


def _key(index: int, left: float = 10, **more: Any) -> dict[str, Any]:
    return {"index": index, "geometry": box(left, 10, 50)} | more


def _roi(canvas: Canvas, user: User, *keys: dict[str, Any]) -> Roi:
    saved = roi_create(
        canvas=canvas, user=user, geometry=box(10, 10, 50), frame_index=2, track=list(keys)
    )
    return saved.roi


def test_key_frames_are_stored_in_order_with_their_time_stamps(
    video_canvas: Canvas, annotator: User
) -> None:
    tracked = _key(6, 30, by="tracking", drift_px=0.41239)
    roi = _roi(video_canvas, annotator, tracked, {"index": 4, "outside": True})
    roi.refresh_from_db()
    assert [(key["index"], key["pts"]) for key in roi.track] == [(4, 160), (6, 240)]
    assert (roi.track[0]["geometry"], roi.track[0]["outside"]) == (None, True)
    assert (roi.track[1]["by"], roi.track[1]["drift_px"]) == ("tracking", 0.412)
    assert roi.revisions.get().track == roi.track


def test_each_key_frame_is_repaired_and_clipped_like_any_outline(
    video_canvas: Canvas, annotator: User
) -> None:
    roi = _roi(video_canvas, annotator, _key(3, -20))
    ring = roi.track[0]["geometry"]["coordinates"][0]
    assert min(x for x, _ in ring) == 0


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"index": 99, "geometry": box(1, 1, 9)}, "no frame with index 99"),
        ({"index": True, "geometry": box(1, 1, 9)}, "no frame with index"),
        ({"index": 3, "pts": 121, "geometry": box(1, 1, 9)}, "presentation time 120"),
        ({"index": 2, "geometry": box(1, 1, 9)}, "the frame of the region itself"),
        ({"index": 3}, "geometry"),
        ({"index": 3, "geometry": box(1, 1, 9), "by": "magic"}, "by is one of"),
        ({"index": 3, "geometry": box(1, 1, 9), "drift_px": float("nan")}, "drift_px"),
    ],
)
def test_a_key_frame_that_makes_no_sense_is_refused(
    video_canvas: Canvas, annotator: User, key: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _roi(video_canvas, annotator, key)


def test_a_track_has_one_roi_per_frame(video_canvas: Canvas, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="twice"):
        _roi(video_canvas, annotator, _key(3), _key(3))


def test_only_a_video_has_tracks(lab: Lab, annotator: User) -> None:
    slide = make_canvas(lab)
    with pytest.raises(InvalidInputError, match="video"):
        roi_create(canvas=slide, user=annotator, geometry=box(10, 10, 50), track=[_key(1)])


def test_a_change_of_the_track_is_a_version_that_can_be_brought_back(
    video_canvas: Canvas, annotator: User
) -> None:
    roi = _roi(video_canvas, annotator, _key(5))
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"review_state": "submitted"})
    roi_update(roi=roi, user=annotator, expected_version=2, changes={"track": [_key(7, 90)]})
    assert (roi.version, roi.review_state) == (3, "draft")
    assert [len(row.track) for row in roi.revisions.order_by("version")] == [1, 1, 1]
    roi_restore(roi=roi, user=annotator, expected_version=3, changes=version_changes(roi, 1))
    assert [key["index"] for key in roi.track] == [5]
    same = roi_update(roi=roi, user=annotator, expected_version=4, changes={"track": roi.track})
    assert not same.changed


def test_a_locked_roi_stays_in_its_track(video_canvas: Canvas, annotator: User) -> None:
    roi = _roi(video_canvas, annotator, _key(5))
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"is_locked": True})
    with pytest.raises(ConflictError):
        roi_update(roi=roi, user=annotator, expected_version=2, changes={"track": []})


def test_many_tracks_change_as_one_step(video_canvas: Canvas, annotator: User) -> None:
    rois = [_roi(video_canvas, annotator) for _ in range(3)]
    steps = [
        RoiStep(RoiAction.UPDATE, roi.pk, version=1, changes={"track": [_key(4, 20 * n)]})
        for n, roi in enumerate(rois, 1)
    ]
    rois_change(canvas=video_canvas, user=annotator, steps=steps)
    for n, roi in enumerate(rois, 1):
        roi.refresh_from_db()
        assert roi.version == 2
        assert min(x for x, _ in roi.track[0]["geometry"]["coordinates"][0]) == 20 * n


def test_geojson_carries_the_track_both_ways(
    video_canvas: Canvas, annotator: User, lab: Lab
) -> None:
    tracked = _key(6, 30, by="tracking", drift_px=0.4)
    roi = _roi(video_canvas, annotator, {"index": 4, "outside": True}, tracked)
    document = exported(video_canvas)
    assert isinstance(document["features"][0]["properties"]["metadata"]["tessera.track"], str)
    again = roi_import(canvas=video_canvas, user=annotator, document=document)
    assert again.count("unchanged") == 1
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"track": []})
    renewed = roi_import(canvas=video_canvas, user=annotator, document=document)
    assert renewed.count("updated") == 1
    roi.refresh_from_db()
    assert [key["index"] for key in roi.track] == [4, 6]
    assert "tessera.track" not in json.dumps(roi.foreign)
    row = roi.revisions.order_by("-version").first().roi_import
    roi_import_undo(roi_import=row, user=annotator)
    roi.refresh_from_db()
    assert roi.track == []


@pytest.mark.parametrize("text", ["{", '[{"index": 99}]', '"x"', "1"])
def test_a_broken_track_refuses_only_its_feature(
    video_canvas: Canvas, annotator: User, text: str
) -> None:
    def feature(track: str | None) -> dict[str, Any]:
        metadata = {"tessera.track": track} if track else {}
        geometry = box(10, 10, 50) | {"plane": {"c": -1, "z": 0, "t": 2}}
        return {"type": "Feature", "geometry": geometry, "properties": {"metadata": metadata}}

    document = {"type": "FeatureCollection", "features": [feature(text), feature(None)]}
    report = roi_import(canvas=video_canvas, user=annotator, document=document)
    assert (report.count("refused"), report.count("created")) == (1, 1)
    assert "track" in report.items[0].reason

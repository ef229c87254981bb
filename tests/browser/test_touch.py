"""Fingers: one draws, two move the image, whatever the tool in hand."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.browser


def fingers(viewer: Any, kind: str, *places: tuple[float, float]) -> None:
    points = [{"x": x, "y": y, "id": index} for index, (x, y) in enumerate(places)]
    viewer.cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_one_finger_draws_and_two_fingers_pan(
    open_viewer: Any, ingest: Any, slide_file: Any
) -> None:
    viewer = open_viewer(ingest(slide_file)).centred()
    viewer.cdp = viewer.page.context.new_cdp_session(viewer.page)
    before = viewer.link()
    viewer.key("r")
    left, right = viewer.places([(700, 500), (1100, 700)])
    fingers(viewer, "touchStart", left)
    for share in (0.3, 0.6, 1.0):
        x = left[0] + share * (right[0] - left[0])
        fingers(viewer, "touchMove", (x, left[1] + share * (right[1] - left[1])))
    fingers(viewer, "touchEnd")
    viewer.wait_count(1)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.left, roi.top, roi.right, roi.bottom) == pytest.approx((700, 500, 1100, 700), abs=3)

    viewer.key("b")
    fingers(viewer, "touchStart", (500, 400))
    fingers(viewer, "touchStart", (500, 400), (600, 400))
    for step in range(1, 6):
        fingers(viewer, "touchMove", (500, 400 + 20 * step), (600, 400 + 20 * step))
    fingers(viewer, "touchEnd")
    after = viewer.link()
    assert float(after["y"]) == pytest.approx(float(before["y"]) - 200, abs=60)
    assert viewer.count() == 1  # what the first finger began was dropped
    assert viewer.problems == []

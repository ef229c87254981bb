"""The scope's view as a polygon."""

from __future__ import annotations

from portal.mosaics.planes import view_polygon


def test_without_an_outline_the_view_is_the_entire_frame() -> None:
    entire = view_polygon([], width_px=11, height_px=5)
    assert entire.tolist() == [[0, 0], [10, 0], [10, 4], [0, 4]]
    assert view_polygon([[1, 2], [3, 4], [5, 6]], width_px=9, height_px=9).shape == (3, 2)

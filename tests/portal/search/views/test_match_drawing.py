"""Marks of matched patches lie in their own picture, however far the patches reach out of it."""

from __future__ import annotations

from portal.search.selectors.explanations import MatchedPair, MatchExplanation
from portal.search.thumbnails.regions import CLOSE
from portal.search.views.match_drawing import GAP_PX, Pane, drawn

WINDOW = (100.0, 200.0, 480.0, 360.0)  # half as wide as its picture
SMALL = (148.0, 248.0, 196.0, 296.0)
BEYOND = (60.0, 150.0, 220.0, 310.0)


def pane(*boxes):
    return Pane("/picture.jpg", WINDOW, boxes, [0.1] * len(boxes), ())


def test_a_mark_of_a_large_patch_stays_within_its_picture():
    explanation = MatchExplanation(similarity=0.5, pairs=(MatchedPair(0, 0, 0.1, 0.5),))
    (line,) = drawn(explanation, pane(SMALL), pane(BEYOND)).lines
    right = CLOSE.width_px + GAP_PX
    assert (line.a.x, line.a.y, line.a.side, line.a.left) == (96, 96, 96, 0)
    assert line.a.badge == (96, 96)
    assert line.a.middle == (144, 144)
    assert (line.b.x, line.b.y, line.b.left) == (right - 80, -100, right)
    assert line.b.badge == (right + 18, 18)  # whole, in the corner
    assert line.b.middle == (right + 80, 60)


def test_a_line_ends_within_its_picture():
    explanation = MatchExplanation(similarity=0.5, pairs=(MatchedPair(0, 0, 0.1, 0.5),))
    far = (570.0, 540.0, 650.0, 620.0)  # its middle is right of the picture, and below
    (line,) = drawn(explanation, pane(far), pane(SMALL)).lines
    assert line.a.middle == (CLOSE.width_px, CLOSE.height_px)

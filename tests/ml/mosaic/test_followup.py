"""Find a place again: exact truth on warped textures, honesty where it is not there."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, CancelledError
from ml.mosaic.followup import Candidate, FollowupConfig, draw_hit, find_place

CONFIG = FollowupConfig(descriptor="sift")
OUTLINE = np.array([[110.0, 110], [190, 110], [190, 180], [110, 180]])


def scene(seed: int, size: int = 700) -> np.ndarray:
    """Spots and strokes to hold on to."""
    rng = np.random.default_rng(seed)
    image = np.full((size, size, 3), 120, np.uint8)
    for _ in range(size * size // 300):
        x, y = (int(v) for v in rng.integers(size, size=2))
        color = [int(v) for v in rng.integers(30, 255, 3)]
        cv2.circle(image, (x, y), int(rng.integers(2, 10)), color, -1)
    return np.asarray(cv2.GaussianBlur(image, (0, 0), 1.2))


@pytest.fixture(scope="module")
def wall() -> np.ndarray:
    return scene(1)


def seen(wall: np.ndarray, angle_deg: float, zoom: float, shift: tuple[float, float]) -> tuple:
    """A 400 px view of the wall, and the map wall to view."""
    H = np.eye(3)
    H[:2] = cv2.getRotationMatrix2D((350, 350), angle_deg, zoom)
    H[:2, 2] += np.array(shift) - 150
    view = cv2.warpPerspective(wall, H, (400, 400))
    view = np.clip(view.astype(float) * 0.8 + 12, 0, 255).astype(np.uint8)  # another lamp
    return view, H


def test_a_place_is_found_at_its_position_and_others_are_left_out(wall: np.ndarray) -> None:
    place = wall[200:500, 200:500]
    near, H_near = seen(wall, 20, 1.15, (10, -20))
    candidates = [Candidate(7, scene(2, 400)), Candidate(8, near), Candidate(9, scene(3, 400))]
    hits = find_place(place, OUTLINE, candidates, config=CONFIG)
    assert [hit.key for hit in hits] == [8]
    truth = cv2.perspectiveTransform((OUTLINE + 200)[None], H_near)[0]
    assert np.abs(hits[0].outline_frame - truth).max() < 1.5
    assert len(hits[0].xy_place) <= hits[0].matches


def test_hits_are_ordered_by_confidence_and_ties_by_key(wall: np.ndarray) -> None:
    place = wall[200:500, 200:500]
    same = np.ascontiguousarray(wall[150:550, 150:550])
    half, _ = seen(wall, 0, 1.0, (230, 0))
    hits = find_place(
        place,
        OUTLINE,
        [Candidate(2, half), Candidate(5, same), Candidate(3, same)],
        config=CONFIG,
    )
    assert [hit.key for hit in hits][:2] == [3, 5]
    assert hits[0].score >= hits[-1].score


def test_surroundings_without_the_place_give_no_hit(wall: np.ndarray) -> None:
    """The right part of the view overlaps the place's surroundings; the outline is outside."""
    place = wall[200:500, 200:500]
    beside = np.ascontiguousarray(wall[150:550, 380:700])
    assert find_place(place, OUTLINE, [Candidate(1, beside)], config=CONFIG) == ()


def test_a_place_without_features_is_not_found(wall: np.ndarray) -> None:
    plain = np.full((300, 300, 3), 128, np.uint8)
    black = np.zeros((300, 300, 3), np.uint8)
    place = wall[200:500, 200:500]
    assert find_place(place, OUTLINE, [Candidate(1, plain), Candidate(2, black)]) == ()
    assert find_place(plain, OUTLINE, [Candidate(1, place)]) == ()
    assert find_place(place, OUTLINE, []) == ()


def test_a_mirror_image_gives_no_hit(wall: np.ndarray) -> None:
    """No scope shows a wall mirrored."""
    place = wall[200:500, 200:500]
    mirrored = np.ascontiguousarray(wall[150:550, 150:550][:, ::-1])
    assert find_place(place, OUTLINE, [Candidate(1, mirrored)], config=CONFIG) == ()


def test_progress_is_reported_and_can_cancel(wall: np.ndarray) -> None:
    place = wall[200:500, 200:500]
    reported: list[tuple[int, int, str]] = []

    def note(done: int, total: int, phase: str) -> None:
        reported.append((done, total, phase))
        if done:
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        find_place(place, OUTLINE, [Candidate(i, place) for i in range(3)], count=3, progress=note)
    assert reported == [(0, 3, "search"), (1, 3, "search")]


def test_an_outline_of_two_corners_raises_an_error(wall: np.ndarray) -> None:
    with pytest.raises(BadInputError, match=r"expected \(P, 2\) with P >= 3, got \(2, 2\)"):
        find_place(wall, OUTLINE[:2], [])


def test_a_drawn_hit_shows_both_images_side_by_side(wall: np.ndarray) -> None:
    place = np.ascontiguousarray(wall[200:500, 200:500])
    frame = np.ascontiguousarray(wall[150:550, 150:550])
    (hit,) = find_place(place, OUTLINE, [Candidate(1, frame)], config=CONFIG)
    drawn = draw_hit(place, OUTLINE, frame, hit, height_px=240)
    assert drawn.shape == (240, 240 + 12 + 240, 3)
    assert (drawn[:, 241:251] != 0).any()  # lines cross the gap

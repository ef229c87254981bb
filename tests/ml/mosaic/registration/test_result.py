"""Valid part of an earlier registration after more frames have come."""

from __future__ import annotations

import numpy as np

from ml.mosaic.registration.links import Link
from ml.mosaic.registration.result import KeyTrail, Registration, Tracked, valid_part


def _key(position: int, *, is_loop_keyframe: bool) -> KeyTrail:
    return KeyTrail(position, 0, np.eye(3), np.eye(3), is_loop_keyframe)


def _link(a: int, b: int) -> Link:
    none = np.zeros((0, 2), np.float32)
    return Link(a, b, none, none, np.eye(3), 1, np.zeros(3, np.float32), np.zeros((0, 2, 2)))


def test_the_reusable_part_ends_at_the_first_changed_frame() -> None:
    earlier = Registration(
        links=(_link(2, 0), _link(5, 2)),
        keys=(0, 2, 5),
        tracked=(Tracked(1, 0, np.eye(3)), Tracked(6, 5, np.eye(3))),
        loop_keyframes=(0, 5),
        motion_model="affine",
        trail=(
            _key(0, is_loop_keyframe=True),
            _key(2, is_loop_keyframe=False),
            _key(5, is_loop_keyframe=True),
        ),
        fixed_pattern_digest="x",
    )
    valid = valid_part(earlier, [0, 1, 2, 4, 5, 6, 7], fixed_pattern_digest="x")
    assert valid is not None
    assert (valid.keys, valid.loop_keyframes, valid.positions()) == ((0, 2), (0,), [0, 1, 2])
    assert [(link.a, link.b) for link in valid.links] == [(2, 0)]
    unchanged = valid_part(earlier, [0, 1, 2, 5, 6, 9], fixed_pattern_digest="x")
    assert unchanged is not None
    assert unchanged.positions() == [0, 1, 2, 5, 6]
    assert valid_part(earlier, [1, 2], fixed_pattern_digest="x") is None
    assert valid_part(earlier, [0, 1, 2, 5, 6], fixed_pattern_digest="y") is None
    assert valid_part(None, [0], fixed_pattern_digest="x") is None

"""Images of folders for evaluations."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ml.evaluation.common.images import consecutive_pairs, image_paths


def test_frames_of_a_sequence_are_ordered_by_number(tmp_path: Path) -> None:
    names = [f"frame_{number}.png" for number in range(1, 13)]
    for number, name in enumerate(names):
        cv2.imwrite(str(tmp_path / name), np.full((16, 16, 3), number, np.uint8))
    cv2.imwrite(str(tmp_path / "mask.png"), np.full((16, 16, 3), 255, np.uint8))
    assert [path.name for path in image_paths(tmp_path)] == names
    pairs = consecutive_pairs([tmp_path], gaps=[1], count=11, long_side_px=16)
    assert [int(b.rgb[0, 0, 0]) - int(a.rgb[0, 0, 0]) for a, b in pairs] == [1] * 11

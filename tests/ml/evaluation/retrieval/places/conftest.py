"""Stills of mucosa, and a sequence whose places move by a known number of pixels."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tests.ml.roi.conftest import draw_mucosa

FRAMES, STEP_PX = 24, 2
WIDTH, HEIGHT = 200, 160


@pytest.fixture(scope="session")
def still():
    """(500, 520, 3) uint8 RGB."""
    return draw_mucosa(500, 520)


@pytest.fixture(scope="session")
def sequence(tmp_path_factory):
    """A folder as structure from motion leaves it: a camera that glides along a plane.

    Points at depth 200 in front of a camera of focal length 200: one unit is one pixel.
    """
    folder = tmp_path_factory.mktemp("data") / "sfm"
    folder.mkdir()
    wall = draw_mucosa(HEIGHT, WIDTH + FRAMES * STEP_PX, seed=7)
    rng = np.random.default_rng(0)
    xy = rng.uniform((0, 0), (wall.shape[1], HEIGHT), (600, 2))
    poses, marks = [], [[] for _ in xy]
    for frame in range(FRAMES):
        left = frame * STEP_PX
        pixels = wall[:, left : left + WIDTH]
        cv2.imwrite(str(folder / f"{frame:08d}.jpg"), pixels[..., ::-1])
        poses.append((left, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        for point in np.flatnonzero((xy[:, 0] >= left) & (xy[:, 0] < left + WIDTH)):
            marks[point].append(frame)
    world = np.column_stack([xy - (WIDTH / 2, HEIGHT / 2), np.full(len(xy), 200.0)])
    write(folder, "visible_view_indexes", range(FRAMES))
    write(folder, "camera_intrinsics_per_view", (200.0, 200.0, WIDTH / 2, HEIGHT / 2))
    names = ("x", "y", "z", "x", "y", "z", "w")
    lines = [f"  {n}: {v}" for pose in poses for n, v in zip(names, pose, strict=True)]
    write(folder, "motion.yaml", lines)
    head = ["ply", "format ascii 1.0", f"element vertex {len(world)}", "end_header"]
    write(folder, "structure.ply", [*head, *(" ".join(map(str, row)) for row in world)])
    write(folder, "view_indexes_per_point", [v for points in marks for v in (-1, *points)])
    return folder


def write(folder, name, lines):
    (folder / name).write_text("\n".join(map(str, lines)) + "\n")

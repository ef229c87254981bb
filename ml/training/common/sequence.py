"""A calibrated sequence with poses and points of structure from motion."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from scipy.spatial.transform import Rotation

from ml.errors import BadInputError, CorruptFileError
from ml.types import ArrayBool, ArrayF64, ArrayI64, ImageU8

NO_POINTS = np.zeros((0, 3), np.float64)


@dataclass(frozen=True, slots=True)
class CalibratedSequence:
    """A calibrated sequence.

    Attributes:
        name: of its folder.
        frames: paths of the images with a pose.
        camera: (3, 3) intrinsics.
        world_from_camera: (N, 4, 4) float64, of the i-th frame.
        mask: (H, W) bool of the view, or None.
        points: (P, 3) float64, scene points in the world; none if the folder holds none.
        seen: (V, 2) int64, rows (point, frame) of which point was used in which frame.
    """

    name: str
    frames: tuple[Path, ...]
    camera: ArrayF64
    world_from_camera: ArrayF64
    mask: ArrayBool | None
    points: ArrayF64
    seen: ArrayI64

    def read(self, index: int) -> ImageU8:
        """(H, W, 3) RGB of a frame.

        Raises:
            BadInputError: it cannot be read.
        """
        path = self.frames[index]
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR) if path.is_file() else None
        if pixels is None:
            raise BadInputError(f"{path.name}: expected an image, found nothing to read")
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), np.uint8)

    def fundamental(self, a: int, b: int) -> ArrayF64:
        """F with ``x_b^T F x_a = 0`` between two frames; see ``fundamental_from_poses``."""
        return fundamental_from_poses(
            self.camera, self.world_from_camera[a], self.world_from_camera[b]
        )

    def project(self, points: ArrayI64, index: int) -> ArrayF64:
        """(K, 2) pixels of scene points, given by their rows, in a frame."""
        camera_from_world = np.linalg.inv(self.world_from_camera[index])
        local = self.points[points] @ camera_from_world[:3, :3].T + camera_from_world[:3, 3]
        pixels = local @ self.camera.T
        projected: ArrayF64 = pixels[:, :2] / pixels[:, 2:]
        return projected


def fundamental_from_poses(
    camera: ArrayF64, world_from_a: ArrayF64, world_from_b: ArrayF64
) -> ArrayF64:
    """Fundamental matrix, ``x_b^T F x_a = 0``, of two views of one camera, of unit norm.

    Raises:
        BadInputError: both views are from one position; there is no epipolar geometry.
    Source: dinov2-adaptation-endoscopic-matching, section III-E: F = K^-T [t]x R K^-1.
    """
    b_from_a = np.linalg.inv(world_from_b) @ world_from_a
    x, y, z = b_from_a[:3, 3]
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    inverse = np.linalg.inv(camera)
    matrix = inverse.T @ cross @ b_from_a[:3, :3] @ inverse
    norm = float(np.linalg.norm(matrix))
    if norm < 1e-15:
        raise BadInputError("poses: expected two camera positions apart, got the same")
    return np.asarray(matrix / norm, np.float64)


def read_sequence(folder: Path) -> CalibratedSequence:
    """Read the layout of sinus-4584: images, intrinsics, camera-to-world poses, mask, points.

    ``motion.yaml`` holds camera-to-world poses (position, quaternion xyzw); the i-th belongs to the
    i-th of ``visible_view_indexes``. ``structure.ply`` and ``view_indexes_per_point`` may be
    missing: then there are no points.

    Raises:
        BadInputError: a file is missing.
        CorruptFileError: the counts disagree.
    """
    indexes = [int(v) for v in _text(folder / "visible_view_indexes").split()]
    camera = [float(v) for v in _text(folder / "camera_intrinsics_per_view").split()]
    values = np.array(
        [float(v) for v in re.findall(r"\b[xyzw]: *(\S+)", _text(folder / "motion.yaml"))]
    )
    if len(camera) < 4 or len(values) % 7 or len(values) // 7 < len(indexes):
        raise CorruptFileError(
            f"motion.yaml: expected a pose for each of {len(indexes)} views, got {len(values) / 7}"
        )
    poses = values.reshape(-1, 7)[: len(indexes)]
    matrices = np.tile(np.eye(4), (len(poses), 1, 1))
    matrices[:, :3, :3] = Rotation.from_quat(poses[:, 3:]).as_matrix()
    matrices[:, :3, 3] = poses[:, :3]
    fx, fy, cx, cy = camera[:4]
    points, visibility = _read_points(folder, indexes)
    return CalibratedSequence(
        name=folder_name(folder),
        frames=tuple(folder / f"{index:08d}.jpg" for index in indexes),
        camera=np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]]),
        world_from_camera=matrices,
        mask=_read_mask(folder / "undistorted_mask.jpg"),
        points=points,
        seen=visibility,
    )


def folder_name(folder: Path) -> str:
    """Name of a folder; of a folder ``frames`` that of its parent."""
    resolved = folder.resolve()
    return resolved.parent.name if resolved.name == "frames" else resolved.name


def _read_points(folder: Path, indexes: list[int]) -> tuple[ArrayF64, ArrayI64]:
    ply, views = folder / "structure.ply", folder / "view_indexes_per_point"
    nothing = np.zeros((0, 2), np.int64)
    if not ply.is_file() or not views.is_file():
        return NO_POINTS, nothing
    head, _, body = ply.read_text(errors="replace").partition("end_header\n")
    match = re.search(r"element vertex (\d+)", head)
    count = int(match.group(1)) if match else 0
    rows = [line.split()[:3] for line in body.splitlines()[:count]]
    marks = np.array([int(float(v)) for v in views.read_text().split()], np.int64)
    point = np.cumsum(marks == -1) - 1
    if len(rows) != count or (len(point) and point[-1] + 1 != count):
        raise CorruptFileError(
            f"view_indexes_per_point: expected {count} points as in structure.ply,"
            f" got {point[-1] + 1 if len(point) else 0}"
        )
    frame_of = {index: i for i, index in enumerate(indexes)}
    pairs = [
        (int(p), frame_of[int(v)]) for p, v in zip(point, marks, strict=True) if int(v) in frame_of
    ]
    return np.array(rows, np.float64).reshape(-1, 3), np.array(pairs, np.int64).reshape(-1, 2)


def _read_mask(path: Path) -> ArrayBool | None:
    plane = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) if path.is_file() else None
    return None if plane is None else np.asarray(plane > 127)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        raise BadInputError(f"{path.name}: expected it in the folder of the sequence") from None

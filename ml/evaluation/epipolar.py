"""Score matches of a calibrated sequence against its structure-from-motion poses."""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from ml.errors import BadInputError, CorruptFileError
from ml.keypoints import match_images, symmetric_epipolar_px
from ml.types import ArrayF64, Progress

AUC_DEG = (5, 10, 20)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A calibrated sequence.

    Attributes:
        frames: paths of the images with a pose. camera: (3, 3) intrinsics.
        world_from_camera: (N, 4, 4) float64, of the i-th frame.
        mask: (H, W) of the view, or None.
    """

    frames: tuple[Path, ...]
    camera: ArrayF64
    world_from_camera: ArrayF64
    mask: npt.NDArray[Any] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate epipolar``."""
    parser.add_argument("sequence", type=Path, help="a folder in the layout of sinus-4584")
    parser.add_argument("--descriptors", default="sift,orb,akaze,kaze")
    parser.add_argument("--gaps", default="1,3,10", help="frame gaps")
    parser.add_argument("--keypoints", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=10, help="at most so many pairs a gap")


def run(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Score each descriptor at each gap; see ``score_pair``."""
    sequence = read_sequence(args.sequence)
    names = [name.strip() for name in args.descriptors.split(",") if name.strip()]
    gaps = [int(gap) for gap in args.gaps.split(",")]
    scores: dict[str, Any] = {name: {} for name in names}
    total, done = len(names) * len(gaps), 0
    for name in names:
        for gap in gaps:
            progress(done, total, f"{name}, gap {gap}")
            done += 1
            scores[name][str(gap)] = _score_gap(sequence, name, gap, args.keypoints, args.pairs)
    return {"frames": len(sequence.frames), "scores": scores}


def score_pair(
    sequence: Sequence, i: int, j: int, *, descriptor: str, max_keypoints: int
) -> dict[str, float]:
    """Match frames i and j and compare with the epipolar geometry of their poses.

    Returns:
        ``matches``; ``epipolar_px`` the mean of eq. 16; ``under_1px``, ``under_3px`` the shares of
        matches whose mean distance to the two epipolar lines is below; ``fundamental_error`` eq.
        18; ``pose_deg`` the larger of the rotation's and the translation direction's error;
        ``seconds``. NaN where nothing was matched.
    Source: dinov2-adaptation-endoscopic-matching, eq. 16-18; departs from eq. 17 by halving the
        symmetric sum, so that the threshold is a distance in px in one image.
    """
    a, b = (_image(sequence.frames[k]) for k in (i, j))
    started = time.perf_counter()
    found = match_images(
        a,
        b,
        descriptor=descriptor,
        max_keypoints=max_keypoints,
        mask_a=sequence.mask,
        mask_b=sequence.mask,
    )
    seconds = time.perf_counter() - started
    truth = fundamental_from_poses(
        sequence.camera, sequence.world_from_camera[i], sequence.world_from_camera[j]
    )
    if not len(found):
        nan = float("nan")
        return {
            "matches": 0.0,
            "epipolar_px": nan,
            "under_1px": nan,
            "under_3px": nan,
            "pose_deg": 180.0,
            "seconds": seconds,
        }
    distance = symmetric_epipolar_px(truth, found.xy_a, found.xy_b)
    return {
        "matches": float(len(found)),
        "epipolar_px": float(distance.mean()),
        "under_1px": float((distance / 2 < 1).mean()),
        "under_3px": float((distance / 2 < 3).mean()),
        "pose_deg": _pose_error(sequence, i, j, found.xy_a, found.xy_b),
        "seconds": seconds,
    }


def fundamental_from_poses(
    camera: ArrayF64, world_from_a: ArrayF64, world_from_b: ArrayF64
) -> ArrayF64:
    """F with ``x_b^T F x_a = 0`` of two views of one camera, unit Frobenius norm.

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


def read_sequence(folder: Path) -> Sequence:
    """Read the layout of sinus-4584: images, intrinsics, camera-to-world poses, mask.

    Raises:
        BadInputError: a file is missing. CorruptFileError: the counts disagree.
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
    mask_path = folder / "undistorted_mask.jpg"
    return Sequence(
        frames=tuple(folder / f"{index:08d}.jpg" for index in indexes),
        camera=np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]]),
        world_from_camera=matrices,
        mask=cv2.imread(str(mask_path), cv2.IMREAD_GRAYSCALE) if mask_path.is_file() else None,
    )


def pose_auc(errors_deg: list[float], limit_deg: float) -> float:
    """Area under the recall curve of pose errors up to a limit, as a share of the limit."""
    errors = np.sort(np.asarray(errors_deg, np.float64))
    recall = np.arange(1, len(errors) + 1) / max(len(errors), 1)
    under = errors < limit_deg
    x = np.r_[0.0, errors[under], limit_deg]
    y = np.r_[0.0, recall[under], recall[under][-1] if under.any() else 0.0]
    return float(np.trapezoid(y, x) / limit_deg)


def _score_gap(
    sequence: Sequence, name: str, gap: int, keypoints: int, count: int
) -> dict[str, float]:
    starts = np.arange(len(sequence.frames) - gap)
    if not len(starts):
        raise BadInputError(f"gap {gap}: expected less than {len(sequence.frames)} frames")
    chosen = np.unique(np.linspace(0, len(starts) - 1, count).astype(int))
    rows = [
        score_pair(sequence, int(i), int(i) + gap, descriptor=name, max_keypoints=keypoints)
        for i in chosen
    ]
    keys = ("matches", "epipolar_px", "under_1px", "under_3px", "seconds")
    summary = {k: round(float(np.nanmean([row[k] for row in rows])), 4) for k in keys}
    poses = [row["pose_deg"] for row in rows]
    return summary | {f"auc_{d}deg": round(pose_auc(poses, d), 4) for d in AUC_DEG}


def _pose_error(
    sequence: Sequence, i: int, j: int, xy_a: npt.NDArray[Any], xy_b: npt.NDArray[Any]
) -> float:
    """Degrees: the larger of rotation and translation-direction error; 180 where none came out."""
    a, b = xy_a.astype(np.float64), xy_b.astype(np.float64)
    if len(a) < 5:
        return 180.0
    try:
        essential, inliers = cv2.findEssentialMat(a, b, sequence.camera, cv2.RANSAC, 0.9999, 1.0)
        if essential is None or essential.shape != (3, 3):
            return 180.0
        _, rotation, shift, _ = cv2.recoverPose(essential, a, b, sequence.camera, mask=inliers)
    except cv2.error:
        return 180.0
    poses = sequence.world_from_camera
    truth = np.linalg.inv(poses[j]) @ poses[i]
    turn = _angle_deg((np.trace(truth[:3, :3].T @ rotation) - 1) / 2)
    along = truth[:3, 3] / max(float(np.linalg.norm(truth[:3, 3])), 1e-12)
    direction = _angle_deg(float(np.dot(along, shift.ravel())))
    return max(turn, min(direction, 180 - direction))


def _angle_deg(cosine: float) -> float:
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _image(path: Path) -> npt.NDArray[Any]:
    pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if pixels is None:
        raise BadInputError(f"{path.name}: expected an image, found nothing to read")
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        raise BadInputError(f"{path.name}: expected in the sequence's folder") from None

"""Scores of methods on simulated sweeps, and their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.evaluation.mosaic.baselines import METHODS, BaselineMosaic, attempt
from ml.evaluation.mosaic.ncc import sweep_ncc
from ml.evaluation.mosaic.relief import pair_errors
from ml.evaluation.mosaic.simulate import SimulatedSweep, SweepConfig, simulate_sweep
from ml.evaluation.mosaic.targets import target_lines
from ml.geometry import FrameMaps, box_corners, transform_points
from ml.reports.tables import markdown_table
from ml.types import ArrayF64, Progress


class SweepScores(TypedDict):
    """Scores of a method on a sweep: counts, cost, and accuracy of its mosaic.

    Attributes:
        mean_px, median_px, max_px: corner errors after the best common placement.
        middle_px: mean corner error seen from the middle frame.
        pair_px, plane_px: see ``pair_errors``, with meshes and by homographies only.
        ncc: mean NCC by method and distance in frames, of sweeps with relief.
        fault_recall, fault_precision: of the unusable frames among the dropped ones.
        fault_reasons: frequency of each reason by fault.
    """

    inputs: int
    registered: int
    usable: int
    model: str
    loops: int
    wall_s: float
    cpu_s: float
    cpu_ms_a_frame: int
    peak_mib: int
    mean_px: NotRequired[float]
    median_px: NotRequired[float]
    max_px: NotRequired[float]
    middle_px: NotRequired[float]
    pair_px: NotRequired[dict[str, float]]
    plane_px: NotRequired[dict[str, float]]
    ncc: NotRequired[dict[str, dict[str, float]]]
    seam: NotRequired[float]
    fault_recall: NotRequired[float]
    fault_precision: NotRequired[float]
    fault_reasons: NotRequired[dict[str, int]]


class SweepRow(SweepScores):
    """One line of the table."""

    sweep: str
    method: str


class SweepTable(TypedDict):
    """Rows, and the configuration of each sweep."""

    data_set: str
    sweeps: dict[str, SweepConfig]
    rows: list[SweepRow]


SWEEPS: dict[str, SweepConfig] = {
    "glide": SweepConfig(),
    "faults": SweepConfig(frames=120, size_px=320, fault_share=0.2),
    "loops": SweepConfig(frames=800, size_px=256, path="loops"),
    "loops-100": SweepConfig(frames=100, size_px=256, path="loops-slow"),
    "break": SweepConfig(frames=60, size_px=320, break_at=0.5),
    "relief-02": SweepConfig(frames=100, size_px=400, relief=0.02),
    "relief-05": SweepConfig(frames=100, size_px=400, relief=0.05),
    "relief-10": SweepConfig(frames=100, size_px=400, relief=0.1),
    "bowel": SweepConfig(size_px=256, relief=0.1, still="00001-21711-frame-39008.jpg"),
    "wall": SweepConfig(size_px=256, relief=0.1, still="00004-22977-frame-60200.jpg"),
    "fold": SweepConfig(size_px=256, relief=0.1, still="00004-22977-frame-17200.jpg"),
}


def simulate_table(
    names: Sequence[str],
    progress: Progress,
    *,
    methods: Sequence[str] = METHODS,
    pictures: Path | None = None,
    stills: Path | None = None,
) -> SweepTable:
    """Run the methods on simulated sweeps.

    Args:
        stills: folder of the stills that some sweeps need.
    Raises:
        BadInputError: no such sweep, or its still is missing.
    """
    rows: list[SweepRow] = []
    for name in names:
        if name not in SWEEPS:
            raise BadInputError(f"sweep {name!r}: expected one of {', '.join(SWEEPS)}")
        config = SWEEPS[name]
        sweep = simulate_sweep(config, stills)
        for method in methods:
            progress(len(rows), len(names) * len(methods), f"{name} {method}")
            mosaic = attempt(method, config, stills)
            scores = score_attempt(mosaic, sweep, has_relief=bool(config.relief))
            rows.append({"sweep": name, "method": method, **scores})
            if pictures is not None and mosaic.pixels is not None:
                pictures.mkdir(parents=True, exist_ok=True)
                bgr = cv2.cvtColor(mosaic.pixels, cv2.COLOR_RGB2BGR)
                small = min(1.0, 900 / max(bgr.shape[:2]))
                bgr = cv2.resize(bgr, None, fx=small, fy=small, interpolation=cv2.INTER_AREA)
                cv2.imwrite(str(pictures / f"{name}-{method}.jpg"), bgr)
    return {"data_set": "simulated", "sweeps": {n: SWEEPS[n] for n in names}, "rows": rows}


def score_attempt(
    mosaic: BaselineMosaic, sweep: SimulatedSweep, *, has_relief: bool = False
) -> SweepScores:
    """Score a mosaic: corner errors, seams, faults and cost; with relief also NCC."""
    size = sweep.frames[0].shape[1]
    usable = [i for i in mosaic.inputs if i not in sweep.faults]
    scores: SweepScores = {
        "inputs": len(mosaic.inputs),
        "registered": len(mosaic.placed),
        "usable": len(usable),
        "model": mosaic.model,
        "loops": mosaic.loops,
        "wall_s": round(mosaic.wall_s, 1),
        "cpu_s": round(mosaic.cpu_s, 1),
        "cpu_ms_a_frame": round(1e3 * mosaic.cpu_s / max(len(mosaic.inputs), 1)),
        "peak_mib": round(mosaic.peak_mib),
    }
    common = sorted(set(mosaic.placed) & set(usable))
    if len(common) >= 2:
        errors = corner_errors(mosaic.placed, sweep.truth, common, size)
        middle = middle_errors(mosaic.placed, sweep.truth, common, size)
        scores["mean_px"] = round(float(errors.mean()), 2)
        scores["median_px"] = round(float(np.median(errors)), 2)
        scores["max_px"] = round(float(errors.max()), 2)
        scores["middle_px"] = round(float(middle.mean()), 2)
        bent, flat = (
            pair_errors(
                _maps(mosaic, common, size, meshes), sweep.truth, sweep.ground, size_px=size
            )
            for meshes in (mosaic.meshes, {})
        )
        scores |= {"pair_px": bent, "plane_px": flat}
        if has_relief and mosaic.dropped is not None:
            scores["ncc"] = sweep_ncc(sweep.frames, mosaic.placed, mosaic.meshes, mask=sweep.mask)
        if mosaic.pixels is not None and mosaic.dropped is not None and not has_relief:
            scores["seam"] = round(seam_visibility(mosaic, sweep), 3)
    if sweep.faults and mosaic.dropped is not None:
        bad, dropped = set(sweep.faults), set(mosaic.dropped)
        scores["fault_recall"] = round(len(bad & dropped) / len(bad), 3)
        scores["fault_precision"] = round(len(bad & dropped) / max(len(dropped), 1), 3)
        reported_faults = Counter(
            f"{sweep.faults[i]} as {mosaic.dropped.get(i, '?')}" for i in bad & dropped
        )
        scores["fault_reasons"] = dict(sorted(reported_faults.items()))
    return scores


def _maps(
    mosaic: BaselineMosaic, common: Sequence[int], size: int, meshes: Mapping[int, ArrayF64]
) -> dict[int, FrameMaps]:
    """Maps of the frames by index, with the given meshes."""
    return {
        i: FrameMaps(mosaic.placed[i][None], meshes[i][None] if i in meshes else None, (size, size))
        for i in common
    }


def corner_errors(
    placed: Mapping[int, ArrayF64], truth: Mapping[int, ArrayF64], common: Sequence[int], size: int
) -> ArrayF64:
    """(N,) float64 mean corner errors, px of the truth's plane, after the best similarity.

    Source: Umeyama 1991, in the plane.
    """
    estimated = _corners(placed, common, size)
    true = _corners(truth, common, size)
    design = np.stack([estimated, np.ones_like(estimated)], axis=1)
    (turn, shift), *_ = np.linalg.lstsq(design, true)
    distance: ArrayF64 = np.abs(turn * estimated + shift - true)
    result: ArrayF64 = distance.reshape(-1, 4).mean(axis=1)
    return result


def middle_errors(
    placed: Mapping[int, ArrayF64], truth: Mapping[int, ArrayF64], common: Sequence[int], size: int
) -> ArrayF64:
    """(N,) float64 mean corner errors in the plane of the middle frame, px, without any fit."""
    anchor = common[len(common) // 2]
    estimated, true = (
        _corners({i: np.linalg.solve(plane[anchor], plane[i]) for i in common}, common, size)
        for plane in (placed, truth)
    )
    distance: ArrayF64 = np.abs(estimated - true)
    result: ArrayF64 = distance.reshape(-1, 4).mean(axis=1)
    return result


def _corners(
    transforms: Mapping[int, npt.NDArray[np.floating]], common: Sequence[int], size: int
) -> npt.NDArray[np.complex128]:
    """(4 N,) transformed corners as x + iy."""
    corners = box_corners(0, 0, size - 1, size - 1)
    xy = np.concatenate([transform_points(transforms[i], corners) for i in common])
    return np.asarray(xy[:, 0] + 1j * xy[:, 1])


def seam_visibility(result: BaselineMosaic, sweep: SimulatedSweep) -> float:
    """95th percentile of the gradient of mosaic minus picture, both smoothed by 2 px.

    It shows steps of brightness between frames, doubled vessels and errors of registration, in
    grey levels per px.
    """
    if result.pixels is None:
        raise BadInputError("seam: expected a mosaic, got none")
    anchor = sorted(set(result.placed) & set(sweep.truth))[len(result.placed) // 2]
    mosaic_from_picture = result.placed[anchor] @ np.linalg.inv(sweep.truth[anchor])
    height, width = result.pixels.shape[:2]
    picture = cv2.warpPerspective(sweep.ground.picture, mosaic_from_picture, (width, height))
    covered = cv2.erode(
        (result.pixels.max(axis=2) > 0).astype(np.uint8), np.ones((15, 15), np.uint8)
    )
    inside = covered > 0
    planes = []
    for rgb in (result.pixels, picture):
        grey = cv2.GaussianBlur(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.float32), (0, 0), 2)
        planes.append(grey * float(100 / max(grey[inside].mean(), 1)))
    difference = planes[0] - planes[1]
    dx = cv2.Sobel(difference, cv2.CV_32F, 1, 0, scale=0.125)
    dy = cv2.Sobel(difference, cv2.CV_32F, 0, 1, scale=0.125)
    return float(np.percentile(np.hypot(dx, dy)[inside], 95))


_COLUMNS = {
    "registered": "registered",
    "mean_px": "mean corner error, px",
    "max_px": "largest, px",
    "middle_px": "seen from the middle frame, px",
    "pair_px": "pairs 5 / 20 apart, px",
    "plane_px": "by homographies",
    "loops": "loops",
    "seam": "seams",
    "fault_recall": "fault recall",
    "fault_precision": "precision",
    "peak_mib": "peak MiB added",
}


def to_markdown(result: SweepTable) -> str:
    """Markdown table of the rows, without times, and a description of the sweeps."""
    head = ["sweep", "method", *_COLUMNS.values()]
    rows = [
        [
            row["sweep"],
            row["method"],
            f"{row['registered']} of {row['inputs']}",
            *(_cell(row.get(key, "")) for key in list(_COLUMNS)[1:]),
        ]
        for row in result["rows"]
    ]
    lines = [markdown_table(head, rows), ""]
    for name, config in result["sweeps"].items():
        lines.append(
            f"* {name}: {config.frames} frames of {config.size_px} px, path {config.path},"
            f" {config.fault_share:.0%} unusable,"
            + (f" relief {config.relief:g}," if config.relief else "")
            + (f" still {config.still}," if config.still else "")
            + f" seed {config.seed}."
        )
    targets = [
        (row["sweep"], target_lines(row["ncc"], {})) for row in result["rows"] if "ncc" in row
    ]
    if targets:
        lines += ["", "Targets and results for frames 1, 5 and 20 apart:"]
        lines += [
            line.replace("- ", f"- {name}: ", 1)
            for name, lines_of_sweep in targets
            for line in lines_of_sweep
        ]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    """Text of a cell; values by distance are separated by slashes."""
    return " / ".join(map(str, value.values())) if isinstance(value, Mapping) else str(value)

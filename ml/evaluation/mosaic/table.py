"""The table of ``python -m ml evaluate mosaic --simulate``: methods by sweep, exact truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.evaluation.mosaic.asked import asked_lines
from ml.evaluation.mosaic.baselines import METHODS, BaselineMosaic, attempt
from ml.evaluation.mosaic.ncc import sweep_ncc
from ml.evaluation.mosaic.relief import pair_errors
from ml.evaluation.mosaic.simulate import SimulatedSweep, SweepConfig, simulate_sweep
from ml.geometry import FrameMaps, box_corners, transform_points
from ml.reports.tables import markdown_table
from ml.types import ArrayF64, Progress


class SweepScores(TypedDict):
    """What a method made of a sweep: counts, cost, and what could be measured of its mosaic.

    Attributes:
        mean_px, median_px, max_px: corner errors after the best common placement.
        middle_px: mean corner error seen from the middle frame.
        pair_px, plane_px: by distance in frames, how far apart the things are that two frames show
            at one place of the mosaic, by their whole maps and by their homographies alone.
        ncc: over hills, mean NCC by way of registering and by distance in frames.
        fault_recall, fault_precision: of the unusable frames among those left out.
        fault_reasons: how often each fault was called what.
    """

    given: int
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
    """Run the methods on simulated sweeps; rows of plain values.

    Args:
        stills: folder of the stills that some sweeps are filmed over.
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
            found = attempt(method, config, stills)
            scores = score_attempt(found, sweep, has_relief=bool(config.relief))
            rows.append({"sweep": name, "method": method, **scores})
            if pictures is not None and found.pixels is not None:
                pictures.mkdir(parents=True, exist_ok=True)
                bgr = cv2.cvtColor(found.pixels, cv2.COLOR_RGB2BGR)
                small = min(1.0, 900 / max(bgr.shape[:2]))
                bgr = cv2.resize(bgr, None, fx=small, fy=small, interpolation=cv2.INTER_AREA)
                cv2.imwrite(str(pictures / f"{name}-{method}.jpg"), bgr)
    return {"data_set": "simulated", "sweeps": {n: SWEEPS[n] for n in names}, "rows": rows}


def score_attempt(
    found: BaselineMosaic, sweep: SimulatedSweep, *, has_relief: bool = False
) -> SweepScores:
    """Corner errors to the truth, seams, faults, cost; over hills what pairs of frames agree on."""
    size = sweep.frames[0].shape[1]
    usable = [i for i in found.given if i not in sweep.faults]
    scores: SweepScores = {
        "given": len(found.given),
        "registered": len(found.placed),
        "usable": len(usable),
        "model": found.model,
        "loops": found.loops,
        "wall_s": round(found.wall_s, 1),
        "cpu_s": round(found.cpu_s, 1),
        "cpu_ms_a_frame": round(1e3 * found.cpu_s / max(len(found.given), 1)),
        "peak_mib": round(found.peak_mib),
    }
    common = sorted(set(found.placed) & set(usable))
    if len(common) >= 2:
        errors = corner_errors(found.placed, sweep.truth, common, size)
        seen = middle_errors(found.placed, sweep.truth, common, size)
        scores["mean_px"] = round(float(errors.mean()), 2)
        scores["median_px"] = round(float(np.median(errors)), 2)
        scores["max_px"] = round(float(errors.max()), 2)
        scores["middle_px"] = round(float(seen.mean()), 2)
        bent, flat = (
            pair_errors(_maps(found, common, size, meshes), sweep.truth, sweep.ground, size_px=size)
            for meshes in (found.meshes, {})
        )
        scores |= {"pair_px": bent, "plane_px": flat}
        if has_relief and found.dropped is not None:
            scores["ncc"] = sweep_ncc(sweep.frames, found.placed, found.meshes, mask=sweep.mask)
        if found.pixels is not None and found.dropped is not None and not has_relief:
            scores["seam"] = round(seam_visibility(found, sweep), 3)
    if sweep.faults and found.dropped is not None:
        bad, dropped = set(sweep.faults), set(found.dropped)
        scores["fault_recall"] = round(len(bad & dropped) / len(bad), 3)
        scores["fault_precision"] = round(len(bad & dropped) / max(len(dropped), 1), 3)
        named = Counter(f"{sweep.faults[i]} as {found.dropped.get(i, '?')}" for i in bad & dropped)
        scores["fault_reasons"] = dict(sorted(named.items()))
    return scores


def _maps(
    found: BaselineMosaic, common: Sequence[int], size: int, meshes: Mapping[int, ArrayF64]
) -> dict[int, FrameMaps]:
    """Index -> the map of a frame, with its mesh where it has one."""
    return {
        i: FrameMaps(found.placed[i][None], meshes[i][None] if i in meshes else None, (size, size))
        for i in common
    }


def corner_errors(
    placed: Mapping[int, ArrayF64], truth: Mapping[int, ArrayF64], common: Sequence[int], size: int
) -> ArrayF64:
    """(N,) float64, px of the truth's plane: mean corner distance after the best common placement.

    A mosaic has no place, direction and scale of its own: the similarity that brings its corners
    nearest to the true ones is taken off first, as for trajectories. Nothing else is fitted.

    Source: Umeyama 1991, in the plane.
    """
    own = _corners(placed, common, size)
    true = _corners(truth, common, size)
    design = np.stack([own, np.ones_like(own)], axis=1)
    (turn, shift), *_ = np.linalg.lstsq(design, true)
    apart: ArrayF64 = np.abs(turn * own + shift - true)
    result: ArrayF64 = apart.reshape(-1, 4).mean(axis=1)
    return result


def middle_errors(
    placed: Mapping[int, ArrayF64], truth: Mapping[int, ArrayF64], common: Sequence[int], size: int
) -> ArrayF64:
    """(N,) float64, px of the middle frame: mean corner distance in its plane, nothing fitted.

    All is looked at through that frame's own transform, whose tilt grows with the square of the
    distance: a map of many views is judged by one of them.
    """
    anchor = common[len(common) // 2]
    own, true = (
        _corners({i: np.linalg.solve(plane[anchor], plane[i]) for i in common}, common, size)
        for plane in (placed, truth)
    )
    apart: ArrayF64 = np.abs(own - true)
    result: ArrayF64 = apart.reshape(-1, 4).mean(axis=1)
    return result


def _corners(
    transforms: Mapping[int, npt.NDArray[np.floating]], common: Sequence[int], size: int
) -> npt.NDArray[np.complex128]:
    """(4 N,) where the corners of frames of a side go, x + iy."""
    corners = box_corners(0, 0, size - 1, size - 1)
    xy = np.concatenate([transform_points(transforms[i], corners) for i in common])
    return np.asarray(xy[:, 0] + 1j * xy[:, 1])


def seam_visibility(found: BaselineMosaic, sweep: SimulatedSweep) -> float:
    """95th percentile of the gradient that the mosaic has and the picture has not.

    Grey levels a px, both smoothed by 2 px: steps of brightness where frames meet, doubled
    vessels, and what registration leaves.
    """
    if found.pixels is None:
        raise BadInputError("seam: expected a mosaic, got none")
    anchor = sorted(set(found.placed) & set(sweep.truth))[len(found.placed) // 2]
    mosaic_from_picture = found.placed[anchor] @ np.linalg.inv(sweep.truth[anchor])
    height, width = found.pixels.shape[:2]
    picture = cv2.warpPerspective(sweep.ground.picture, mosaic_from_picture, (width, height))
    seen = cv2.erode((found.pixels.max(axis=2) > 0).astype(np.uint8), np.ones((15, 15), np.uint8))
    inside = seen > 0
    planes = []
    for rgb in (found.pixels, picture):
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
    """The rows as a table, with a description of the sweeps; times are left to ``make bench``."""
    head = ["sweep", "method", *_COLUMNS.values()]
    rows = [
        [
            row["sweep"],
            row["method"],
            f"{row['registered']} of {row['given']}",
            *(_told(row.get(key, "")) for key in list(_COLUMNS)[1:]),
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
    asked = [(row["sweep"], asked_lines(row["ncc"], {})) for row in result["rows"] if "ncc" in row]
    if asked:
        lines += ["", "Targets and results for frames 1, 5 and 20 apart:"]
        lines += [line.replace("- ", f"- {name}: ", 1) for name, told in asked for line in told]
    return "\n".join(lines) + "\n"


def _told(value: object) -> str:
    """A cell; figures by distance one after the other."""
    return " / ".join(map(str, value.values())) if isinstance(value, Mapping) else str(value)

"""Scores against camera poses as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ml.evaluation.common.descriptors import versions_line
from ml.evaluation.matching.tables import skipped_line
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table

_COLUMNS = (
    ("epipolar error, px (eq. 16)", "epipolar_px"),
    ("sd over pairs", "epipolar_px_sd"),
    ("< 1 px", "under_1px"),
    ("< 3 px", "under_3px"),
    ("< 1 px, sum", "under_1px_sum"),
    ("F error (eq. 18)", "fundamental_error"),
    ("raw inliers (eq. 19)", "inliers"),
    ("matches", "matches"),
    ("AUC 5", "auc_5deg"),
    ("AUC 10", "auc_10deg"),
    ("AUC 20", "auc_20deg"),
    ("MAGSAC: AUC 5", "magsac_auc_5deg"),
    ("MAGSAC: AUC 10", "magsac_auc_10deg"),
    ("MAGSAC: AUC 20", "magsac_auc_20deg"),
    ("partner found", "partner_found"),
)
_BY_GAP = (
    ("< 3 px by gap", "under_3px"),
    ("Mean epipolar error by gap, px", "epipolar_px"),
    ("Matches by gap", "matches"),
    ("Partner found by gap", "partner_found"),
    ("Pose AUC at 10 degrees by gap", "auc_10deg"),
    ("Pose AUC at 10 degrees by gap, MAGSAC", "magsac_auc_10deg"),
)


PAPER_GAP = 16
"""The gap at which the paper samples (section IV-A)."""

_PAPER_COLUMNS = (
    ("sd", "epipolar_px_sd"),
    ("< 1 px", "under_1px"),
    ("< 3 px", "under_3px"),
    ("F error", "fundamental_error"),
    ("raw inliers", "inliers"),
    ("matches", "matches"),
    ("partner found", "partner_found"),
)


def epipolar_tables(result: Mapping[str, Any]) -> str:
    """Every table of ``evaluate epipolar``."""
    options, scores = result["options"], result["scores"]
    head = (
        f"{result['sequence']}: {result['frames']} frames, {options['pairs']} pairs at gaps"
        f" {', '.join(str(gap) for gap in options['gaps'])}, at most {options['max_keypoints']}"
        f" key points, full resolution."
    )
    note = (
        "Columns < 1 px and < 3 px use half of eq. 16 (the mean distance to the two epipolar "
        "lines); '< 1 px, sum' does not. All columns but the raw inliers are of `match_images`; "
        "those are of mutual neighbours under the ratio test, before any geometry. A pose is that "
        "of the essential matrix by RANSAC at 1 px, which keeps the noise of its best five "
        "matches; beside it by MAGSAC at 1 px over the same matches, as `estimate_pose` does it."
    )
    versions = versions_line(result.get("versions", {}))
    parts = [
        head,
        versions,
        skipped_line(result["skipped"]),
        note,
        "**All gaps together (table I)**",
    ]
    compared = f"p against {result['compared_with']}"
    rows = [
        [
            name,
            *(by_gap["all"][key] for _, key in _COLUMNS),
            result["seconds"].get(name),
            result["t_test"].get(name),
        ]
        for name, by_gap in scores.items()
    ]
    parts.append(
        markdown_table(["descriptor", *(title for title, _ in _COLUMNS), "seconds", compared], rows)
    )
    gaps = [str(gap) for gap in options["gaps"]]
    for title, key in _BY_GAP:
        rows = [[name, *(by_gap[gap][key] for gap in gaps)] for name, by_gap in scores.items()]
        parts += [f"**{title}**", markdown_table(["descriptor", *gaps], rows)]
    parts += _raw(scores)
    return "\n\n".join(part for part in parts if part)


def _raw(scores: Mapping[str, Any]) -> list[str]:
    keys = ("raw_matches", "raw_epipolar_px", "raw_under_1px", "raw_under_3px", "inliers")
    rows = [[name, *(by_gap["all"][key] for key in keys)] for name, by_gap in scores.items()]
    heads = ["descriptor", "matches", "epipolar error, px", "< 1 px", "< 3 px", "inliers (eq. 19)"]
    title = "**Mutual neighbours under the ratio test alone, all gaps**"
    return [title, markdown_table(heads, rows)]


def poses_table(result: Mapping[str, Any]) -> str:
    """Table I of dinov2-adaptation at the paper's gap, or at the last gap if it was not scored."""
    gaps, compared = result["options"]["gaps"], result["compared_with"]
    gap = PAPER_GAP if PAPER_GAP in gaps else gaps[-1]
    rows = [
        [
            name,
            by_gap[str(gap)]["epipolar_px"],
            *(by_gap[str(gap)][key] for _, key in _PAPER_COLUMNS),
            by_gap["all"]["epipolar_px"],
            result["t_test"].get(name),
        ]
        for name, by_gap in result["scores"].items()
    ]
    heads = [
        "method",
        f"epipolar error at gap {gap}, px",
        *(title for title, _ in _PAPER_COLUMNS),
        "error over all gaps, px",
        f"p against {compared}",
    ]
    head = (
        f"{result['sequence']}: {result['options']['pairs']} pairs at gaps"
        f" {', '.join(map(str, gaps))}."
    )
    return f"{head}\n\n{markdown_table(heads, rows)}"


def write_page(page: Path, result: Mapping[str, Any]) -> None:
    """Replace the table ``poses`` of a page.

    Raises:
        BadInputError: see ``update_card``.
    """
    update_card(page, "poses", poses_table(result))

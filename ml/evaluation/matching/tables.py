"""Scores of key point matching as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ml.evaluation.common.descriptors import versions_line
from ml.evaluation.matching.pairs import CORE_FAMILIES, FAMILIES
from ml.reports.tables import markdown_table


def matching_tables(result: Mapping[str, Any]) -> str:
    """Every table of ``evaluate matching``."""
    parts = [_head(result)]
    for key, write in (
        ("papers", _papers),
        ("carried", _carried_table),
        ("hard", _hard),
        ("unrelated", _unrelated_table),
    ):
        if key in result:
            parts += write(result[key], result["options"])
    return "\n\n".join(parts)


def skipped_line(skipped: Mapping[str, str]) -> str:
    """Sentence with the descriptors that were not scored, empty if there are none."""
    if not skipped:
        return ""
    return "Not scored: " + "; ".join(f"{n} ({reason})" for n, reason in skipped.items()) + "."


def _head(result: Mapping[str, Any]) -> str:
    data, options = result["data"], result["options"]
    pairs = ", ".join(f"{count} {family}" for family, count in data["pairs"].items() if count)
    lines = [
        f"{data['images']} images of {data['scenes']} scenes ({', '.join(data['folders'])}), long"
        f" side at most {options['long_side_px']} px; pairs: {pairs};"
        f" {data['real_homographies']} homographies between real frames; seed {options['seed']}.",
        versions_line(result.get("versions", {})),
        skipped_line(result["skipped"]),
    ]
    return "\n".join(line for line in lines if line)


def _papers(results: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    title = (
        f"**The papers' protocol: {options['max_keypoints']} key points of"
        f" {options['detector']}, exact partners, PE <= 5 px; {_family_names(results)}**"
    )
    heads = ["descriptor", "NN precision", "exact partner", "NNT precision", "NNT score"]
    heads += ["at best F1: precision", "score", "worst tenth: NN precision", "exact", "NNT score"]
    rows = []
    for name, scores in results.items():
        core, worst = scores["families"].get("core"), scores["worst_tenth"]
        if core is None:
            continue
        keys = ("nn_precision", "exact", "nnt_precision", "nnt_score")
        reached = all(scores["thresholds"]["target_reached"])
        rows.append(
            [
                name if reached else f"{name} (*)",
                *(core[key] for key in keys),
                *(core[f"f1_{key}"] for key in ("precision", "score")),
                *(worst[key] for key in ("nn_precision", "exact", "nnt_score")),
            ]
        )
    note = (
        f"NNT thresholds are chosen on one half of the images for the best matching score at a"
        f" precision of at least {options['target']:g}, and applied to the other half, both ways;"
        f" beside them those of the best F1. (*) no threshold was that precise: best F1."
    )
    return [
        title,
        markdown_table(heads, rows),
        note,
        *_family_table(results, "nn_precision", "NN precision by family"),
        *_family_table(results, "exact", "Exact partner by family"),
        *_family_table(results, "nnt_score", "NNT matching score by family"),
        *_curve_readings(results),
    ]


def _family_names(results: Mapping[str, Any]) -> str:
    """The papers' families that a ``core`` row covers."""
    scored = [f for f in CORE_FAMILIES if any(f in s["families"] for s in results.values())]
    return f"{', '.join(scored)} together"


def _family_table(results: Mapping[str, Any], key: str, title: str) -> list[str]:
    families = [f for f in FAMILIES if any(f in s["families"] for s in results.values())]
    rows = [
        [name, *(scores["families"][family][key] for family in families)]
        for name, scores in results.items()
    ]
    return [
        f"**{title}**",
        markdown_table(["descriptor", *(f.replace("_", ", ") for f in families)], rows),
    ]


def _curve_readings(results: Mapping[str, Any]) -> list[str]:
    rows = [
        [name, curve.get("recall_at_0.01"), curve.get("recall_at_0.05"), curve["area"]]
        for name, scores in results.items()
        if (curve := scores["curves"].get("viewpoint"))
    ]
    heads = ["descriptor", "recall at 1 - precision .01", "at .05", "area"]
    title = "**Recall against 1 - precision under viewpoint changes with noise**"
    return [title, markdown_table(heads, rows)] if rows else []


def _carried_table(results: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    keys = ("nn_precision", "exact", "nnt_precision", "nnt_score")
    rows = [
        [name, *(core[key] for key in keys)]
        for name, scores in results.items()
        if (core := scores["families"].get("core"))
    ]
    heads = ["descriptor", "NN precision", "exact partner", "NNT precision", "NNT score"]
    title = (
        "**Hand-crafted descriptors in their best form, papers' protocol: key points of their own"
        " detector, given how the transform changes size and angle**"
    )
    return [title, markdown_table(heads, rows)]


def _hard(results: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    heads = ["descriptor", "precision", "right a pair", "worst tenth: right", "within 1 px"]
    heads += ["mutual NN alone: precision", "right", "seconds a pair"]
    keys = ("precision", "right", "worst_right", "under_1px", "raw_precision", "raw_right")
    parts = []
    for group, families in (("core", _family_names(results)), ("all", "all families scored")):
        rows = [
            [name, *(scores["families"][group][key] for key in keys), scores["seconds"]]
            for name, scores in results.items()
            if group in scores["families"]
        ]
        title = (
            f"**The hard protocol: own detection in both images, {options['hard_keypoints']} key"
            f" points, `match_images`, right within 3 px; {families}**"
        )
        parts += [title, markdown_table(heads, rows)] if rows else []
    return [
        *parts,
        *_family_table(results, "precision", "Hard protocol, precision by family"),
        *_family_table(results, "right", "Hard protocol, right matches a pair by family"),
    ]


def _unrelated_table(results: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    keys = ("matches", "inliers", "planar", "raw_matches", "raw_inliers", "raw_planar")
    heads = ["descriptor", "pairs", "matches", "epipolar inliers", "homography inliers"]
    heads += ["mutual NN: matches", "epipolar inliers", "homography inliers"]
    parts = []
    for kind, title in (
        ("unrelated", "**Unrelated images: totals over all pairs (fewer is better)**"),
        ("related", "**Real neighbouring frames: means a pair (more is better)**"),
    ):
        rows = [
            [name, f"{scores[kind]['pairs']}", *(scores[kind][key] for key in keys)]
            for name, scores in results.items()
            if kind in scores
        ]
        parts += [title, markdown_table(heads, rows)] if rows else []
    return parts

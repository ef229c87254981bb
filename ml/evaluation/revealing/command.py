"""``python -m ml evaluate revealing``: text, faces and the outside, found and falsely flagged."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ml.evaluation.revealing.persons import OTHERS, PersonScores, measure_persons
from ml.evaluation.revealing.text import CONTRASTS, HEIGHTS_PX, TextScores, measure_text
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.types import Progress


class RevealingReport(TypedDict):
    """What ``--json`` writes."""

    text: TextScores
    persons: PersonScores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml evaluate revealing``."""
    parser.add_argument("data", type=Path, help="folder of the development data")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--card", type=Path, help="model card whose figures are replaced")


def run(args: argparse.Namespace, progress: Progress) -> RevealingReport:
    """Measure, and write the tables into a card.

    Raises:
        MlError: no scikit-image, or no such section in the card.
    """
    result: RevealingReport = {
        "text": measure_text(args.data, seed=args.seed, progress=progress),
        "persons": measure_persons(args.data, progress=progress),
    }
    if args.card is not None:
        update_card(args.card, "text", text_figures(result["text"]))
        update_card(args.card, "persons", person_figures(result["persons"]))
    return result


def text_figures(text: TextScores) -> str:
    """Markdown: drawn lines by height and contrast, real text, and pictures without."""
    found = {(row["height_px"], row["contrast"]): row for row in text["drawn"]}
    rows: list[Sequence[str | float | None]] = []
    for height in HEIGHTS_PX:
        cells = [found[height, name] for name in CONTRASTS]
        rows.append([f"{height} px", *(f"{one['found']} of {one['lines']}" for one in cells)])
    heads = ["Capitals", *(f"{low} to {high - 1} levels" for low, high in CONTRASTS.values())]
    without = text["without_text"]
    flagged = sum(row["flagged"] for row in without.values())
    pictures = sum(row["pictures"] for row in without.values())
    by_set = ", ".join(
        f"{name} {row['flagged']} of {row['pictures']}" for name, row in without.items()
    )
    real = ", ".join(
        f"{name} {row['flagged']} of {row['pictures']}" for name, row in text["real"].items()
    )
    standing = "; ".join(
        f"{row['video']}, {row['frames']} frames: {row['found_in_first_frame']} of {row['lines']}"
        f" found in one frame, {row['found_standing']} over all frames,"
        f" {row['flagged_without']} flagged without text"
        for row in text["standing"]
    )
    return "\n".join(
        [
            markdown_table(heads, rows),
            "",
            f"- Pictures without text that were flagged: {flagged} of {pictures} ({by_set}).",
            f"- Stills with text of a device that were flagged: {real}.",
            f"- Faint lines of 12 px that stand in a whole video: {standing}.",
        ]
    )


def person_figures(persons: PersonScores) -> str:
    """Markdown: faces and frames outside."""
    faces, outside = persons["faces"], persons["outside"]
    turned: dict[int, list[int]] = {}
    for row in faces["astronaut"]:
        if row["found"]:
            turned.setdefault(row["side_px"], []).append(row["turned_deg"])
    portrait = "; ".join(
        f"{side} px turned by {', '.join(map(str, turns))} degrees"
        for side, turns in turned.items()
    )
    small, without = faces["small_portraits"], faces["without"]
    put_in = [name for row in outside for name in row["found_of_put_in"]]
    videos = [row for row in outside if row["found_of_put_in"]]
    frames, told = (sum(row[key] for row in outside) for key in ("frames", "flagged"))
    silent = ", ".join(row["video"] for row in outside if not row["found_of_put_in"]) or "-"
    return "\n".join(
        [
            f"- One portrait in a picture of 640 x 480: found at {portrait}.",
            f"- Small portraits (25 px, enlarged to 100): {small['found']} of {small['faces']}"
            f" found; {small['flagged']} of {small['no_faces']} pieces without a face flagged.",
            "- Development stills, none with a face:"
            f" {without['flagged']} of {without['pictures']} flagged.",
            f"- Frames of {len(outside)} development videos and operations: {told} of {frames}"
            f" flagged as outside. {len(OTHERS)} pictures of other things were put into each:"
            f" {len(put_in)} were found, in {len(videos)} of them; none were found in: {silent}.",
        ]
    )

"""``python -m ml evaluate phi``: identifying text, faces and the outside of the body in pixels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ml.evaluation.phi.persons import OTHERS, PersonScores, measure_persons
from ml.evaluation.phi.text import LINES, TextScores, measure_text
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.types import Progress


class PhiReport(TypedDict):
    """Result that ``--json`` writes."""

    text: TextScores
    persons: PersonScores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m ml evaluate phi``."""
    parser.add_argument("data", type=Path, help="folder of the development data")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, default=LINES, help="drawn for each case")
    parser.add_argument("--every", type=int, default=1, help="one in so many real pictures")
    parser.add_argument("--card", type=Path, help="model card whose figures are replaced")


def run(args: argparse.Namespace, progress: Progress) -> PhiReport:
    """Measure, and write the tables into a card.

    Raises:
        MlError: no scikit-image, or no such section in the card.
    """
    result: PhiReport = {
        "text": measure_text(
            args.data, seed=args.seed, lines=args.lines, every=args.every, progress=progress
        ),
        "persons": measure_persons(args.data, progress=progress),
    }
    if args.card is not None:
        update_card(args.card, "text", text_figures(result["text"]))
        update_card(args.card, "persons", person_figures(result["persons"]))
    return result


def text_figures(text: TextScores) -> str:
    """Markdown: a row for each case."""
    rows: list[Sequence[str | float | None]] = [
        [
            row["case"],
            _share(row["identifying_held"], row["identifying"]),
            _share(row["other_held"], row["other"]),
        ]
        for row in text["cases"]
    ]
    return markdown_table(["Pictures", "Held, identifying text", "Held, other or no text"], rows)


def _share(count: int, of: int) -> str:
    return f"{count} of {of}" if of else "-"


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
    frames, flagged = (sum(row[key] for row in outside) for key in ("frames", "flagged"))
    silent = ", ".join(row["video"] for row in outside if not row["found_of_put_in"]) or "-"
    return "\n".join(
        [
            f"- One portrait in a picture of 640 x 480: found at {portrait}.",
            f"- Small portraits (25 px, enlarged to 100): {small['found']} of {small['faces']}"
            f" found; {small['flagged']} of {small['no_faces']} pieces without a face flagged.",
            "- Development stills, none with a face:"
            f" {without['flagged']} of {without['pictures']} flagged.",
            f"- Frames of {len(outside)} development videos and operations: {flagged} of {frames}"
            f" flagged as outside. {len(OTHERS)} pictures of other things were put into each:"
            f" {len(put_in)} were found, in {len(videos)} of them; none were found in: {silent}.",
        ]
    )

"""docs/benchmarks.md and .json out of what was measured."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.measure import Row, Section

DOCS = Path(__file__).resolve().parents[2] / "docs"


def write(sections: list[Section], *, commit: str) -> None:
    """Both files; the figures are those of this run.

    A section measured by itself, which this run doesn't measure, stays where it stood.
    """
    machine = {
        "processors": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit,
    }
    _render(machine, _with_what_stands(sections))


def replace(section: Section, *, after: str) -> None:
    """One section measured by itself, among those of the last whole run.

    Args:
        after: title of the section that it follows where there is none of its title yet.
    """
    machine, sections = _standing()
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    section.note += f" Measured by itself, {when}."
    titles = [part.title for part in sections]
    if section.title in titles:
        sections[titles.index(section.title)] = section
    else:
        sections.insert(titles.index(after) + 1, section)
    _render(machine, sections)


def tell(section: Section, *, after: str, write: bool) -> None:
    """Print a section that was measured by itself; write it too, see ``replace``."""
    for row in section.rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
        print(f"{row.what:<75} {row.value:10.3f} {row.unit:<8} {row.against} {ratio} {row.budget}")
    if write:
        replace(section, after=after)


def rows_of(title: str) -> list[Row]:
    """Rows under a title; none if it does not exist."""
    return next((row.rows for row in _standing()[1] if row.title == title), [])


def _standing() -> tuple[dict[str, Any], list[Section]]:
    """Machine and sections of the report as it is."""
    data = json.loads((DOCS / "benchmarks.json").read_text())
    return data["machine"], [
        Section(
            section["title"],
            section["note"],
            [Row(**row) for row in section["rows"]],
            section.get("over_time", []),
        )
        for section in data["sections"]
    ]


def _with_what_stands(measured: list[Section]) -> list[Section]:
    """The sections of a whole run, and after its predecessor each that it did not measure."""
    merged = list(measured)
    titles = {measurement.title for measurement in measured}
    before: str | None = None
    for row in _standing()[1]:
        if row.title not in titles:
            at = next((i for i, other in enumerate(merged) if other.title == before), -1)
            merged.insert(at + 1, row)
        before = row.title
    return merged


def _render(machine: dict[str, Any], sections: list[Section]) -> None:
    report = {"machine": machine, "sections": [asdict(section) for section in sections]}
    (DOCS / "benchmarks.json").write_text(json.dumps(report, indent=1) + "\n")
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; no figure here is typed by hand. The ratio says how many times "
        "faster than the named alternative of the same run Tessera was (below 1: slower).",
        "",
        f"{machine['processors']} processors ({machine['architecture']}), Python "
        f"{machine['python']}, commit {machine['commit']}, "
        f"{machine['measured']}.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", "", section.note]
        if section.rows:
            lines += ["", "| What | Measured | Against | Ratio | Budget |", "|---|---|---|---|---|"]
            lines += [_line(row) for row in section.rows]
        if section.over_time:
            first, *others = section.over_time
            lines += ["", f"| {' | '.join(first)} |", "|---" * len(first) + "|"]
            lines += [f"| {' | '.join(other)} |" for other in others]
    (DOCS / "benchmarks.md").write_text("\n".join(lines) + "\n")


def commit_here() -> str:
    """Short hash of what is checked out."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _line(row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    digits = 4 if row.value < 0.1 else 2 if row.value < 100 else 0
    value = f"{row.value:,.{digits}f} {row.unit}"
    return f"| {row.what} | {value} | {row.against} | {ratio} | {row.budget} |"

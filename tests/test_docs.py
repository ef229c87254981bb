"""Documentation: links work, files that are named exist, figures come from commands."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ml.reports.figures import figures_of

ROOT = Path(__file__).resolve().parents[1]
LISTED = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
).stdout.splitlines()
OUTSIDE_A_CHECKOUT = [
    str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
]
PAGES = sorted(LISTED or OUTSIDE_A_CHECKOUT)

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FIGURES = re.compile(r"<!-- figures: (\S+) -->\n.*?<!-- end figures -->", re.DOTALL)
FILE = re.compile(r"`((?:ml|portal|tests|docs|static|docker)/[\w./-]+\.\w+)`")


def text_of(page: str) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text_of(str(page.relative_to(ROOT))), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_and_image_leads_somewhere(page: str) -> None:
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        assert not anchor or anchor in anchors(target), f"{page}: {link}"


def test_every_file_that_a_page_names_is_there() -> None:
    named = [(page, name) for page in PAGES for name in FILE.findall(text_of(page))]
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "results").glob("*.json")), ids=lambda p: p.name
)
def test_stored_results_contain_figures_only(path: Path) -> None:
    report = json.loads(path.read_text())
    assert figures_of(report) == report


@pytest.mark.parametrize(
    "page",
    [
        "docs/papers.md",
        "docs/evaluation.md",
        *(page for page in PAGES if page.startswith("docs/models/")),
    ],
)
def test_measurements_are_in_the_files_that_their_commands_write(page: str) -> None:
    """Settings have two decimals at most; what has more, or a table of scores, was measured."""
    text = FIGURES.sub("", text_of(page))
    assert re.findall(r"(?<![\w.])[01]?\.\d{3,}", text) == []
    assert re.findall(r"^\|.*[|(] ?[01]?\.\d{2,}.*$", text, re.MULTILINE) == []

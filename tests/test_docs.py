"""The pages for people: links lead somewhere, cards are short, code that is named exists."""

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


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    missing = [name for name in FILE.findall(text_of(page)) if not (ROOT / name).exists()]
    assert missing == []


def _decisions() -> dict[str, list[str]]:
    """Number and title of each decision: its sentences, without asides and code."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").replace("\n", " ")
    text = re.sub(r"\([^)]*\)|`[^`]*`", "x", text.split(" ## ")[-1])
    _, *parts = re.split(r"\*\*(\d+\. [^*]+)\*\*", text)
    ends = re.compile(r"(?<=[.!?])\s+(?=[A-Zx])")
    return {
        name: ends.split(body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_a_decision_has_two_to_six_sentences() -> None:
    decisions = _decisions()
    assert len(decisions) > 70
    assert {name: len(said) for name, said in decisions.items() if not 2 <= len(said) <= 6} == {}


def test_decisions_are_numbered_in_their_order() -> None:
    numbers = [int(name.split(".")[0]) for name in _decisions()]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    "card", sorted(card.stem for card in (ROOT / "docs" / "models").glob("*.md"))
)
def test_a_card_has_at_most_600_words_and_one_table(card: str) -> None:
    text = (ROOT / "docs" / "models" / f"{card}.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| ?---", text, re.MULTILINE)) <= 1
    assert len(FIGURES.sub("", text).split()) <= 600


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "results").glob("*.json")), ids=lambda p: p.name
)
def test_kept_results_hold_figures_alone(path: Path) -> None:
    kept = json.loads(path.read_text())
    assert figures_of(kept) == kept


@pytest.mark.parametrize(
    "page",
    [
        "docs/papers.md",
        "docs/evaluation.md",
        *(page for page in PAGES if page.startswith("docs/models/")),
    ],
)
def test_what_was_measured_stands_where_its_command_writes_it(page: str) -> None:
    """Settings have two decimals at most; what has more, or a table of scores, was measured."""
    text = FIGURES.sub("", text_of(page))
    assert re.findall(r"(?<![\w.])[01]?\.\d{3,}", text) == []
    assert re.findall(r"^\|.*[|(] ?[01]?\.\d{2,}.*$", text, re.MULTILINE) == []

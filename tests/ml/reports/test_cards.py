"""Figures in model cards."""

from __future__ import annotations

from pathlib import Path

import pytest

from ml.errors import BadInputError
from ml.reports.cards import update_card


def test_a_card_gets_its_figures_and_other_text_remains(tmp_path: Path) -> None:
    card = tmp_path / "a.md"
    card.write_text(
        "# a\n<!-- figures: other -->\nx\n<!-- end figures -->\n"
        "<!-- figures: training -->\nold\n<!-- end figures -->\nend\n"
    )
    for _ in range(2):
        update_card(card, "training", "new")
    assert card.read_text() == (
        "# a\n<!-- figures: other -->\nx\n<!-- end figures -->\n"
        "<!-- figures: training -->\nnew\n<!-- end figures -->\nend\n"
    )
    with pytest.raises(BadInputError, match=r"a\.md"):
        update_card(card, "missing", "new")
    with pytest.raises(BadInputError, match=r"b\.md"):
        update_card(tmp_path / "b.md", "training", "new")

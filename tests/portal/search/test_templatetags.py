"""Groups of hits on the page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from portal.search.templatetags.search import close_and_others


@pytest.mark.parametrize(
    ("closeness", "expected"),
    [
        ([True, False, True], [[0, 2], [1]]),
        ([False, False], [[0, 1]]),
        ([None, None], [[0, 1]]),
        ([], []),
    ],
)
def test_hits_that_are_not_close_are_a_second_group_if_others_are_close(
    closeness: list[Any], expected: list[list[int]]
) -> None:
    hits: list[Any] = [
        SimpleNamespace(number=number, is_close=close) for number, close in enumerate(closeness)
    ]
    assert [[hit.number for hit in group] for group in close_and_others(hits)] == expected

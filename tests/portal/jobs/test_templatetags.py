"""Template filters for jobs."""

from __future__ import annotations

import pytest

from portal.jobs.templatetags.jobs import result_name


@pytest.mark.parametrize(
    ("key", "name"),
    [("canvas_id", "Canvas id"), ("width_px", "Width (px)"), ("seconds", "Seconds"), ("s", "S")],
)
def test_keys_of_results_are_formatted(key: str, name: str) -> None:
    assert result_name(key) == name

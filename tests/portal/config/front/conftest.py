"""Fronts that end with their test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from portal.config.front.limits import FrontLimits
from tests.portal.config.front.running import QUICK, Api, Running


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Running]]:
    """``run(limits=..., **api)``: a front that is running."""
    with contextlib.ExitStack() as stack:

        def start(*, limits: FrontLimits = QUICK, **api: Any) -> Running:
            folder = tmp_path_factory.mktemp("f")
            return stack.enter_context(Running(folder, Api(**api), limits))

        yield start

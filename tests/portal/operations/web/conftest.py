"""Servers that end with their test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from portal.operations.web.protocol import ClientLimits
from tests.portal.operations.web.running import QUICK, Application, Running


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    """``run(application, limits)``: a server that is running."""
    with contextlib.ExitStack() as stack:

        def start(application: Application, limits: ClientLimits = QUICK) -> Running:
            return stack.enter_context(Running(application, limits))

        yield start

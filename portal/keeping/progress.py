"""What long work tells of itself, to whoever shows it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with what is done, of how much, and of which phase; often, so it must be cheap."""

    def __call__(self, done: int, total: int, phase: str) -> None:
        """Tell."""


def silent(done: int, total: int, phase: str) -> None:
    """For callers that show nothing."""

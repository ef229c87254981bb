"""Common fields of training configurations, and the length of a run."""

from __future__ import annotations

import dataclasses
from typing import Protocol, TypeVar

from ml.errors import BadInputError

LENGTHS = ("rounds", "epochs", "steps")
"""Names of the field with the length of a run; the first one that a configuration has counts."""


class RunConfig(Protocol):
    """Common fields of training configurations; a frozen dataclass."""

    @property
    def name(self) -> str:
        """Name of what is trained."""

    @property
    def version(self) -> str:
        """Version of what is trained."""

    @property
    def seed(self) -> int:
        """Seed of all random draws."""


C = TypeVar("C", bound=RunConfig)


def length_field(config: RunConfig) -> str | None:
    """Name of the field with the length of a run; None if it takes no steps."""
    return next((name for name in LENGTHS if hasattr(config, name)), None)


def with_length(config: C, steps: int) -> C:
    """Change the number of steps of a configuration.

    Learning rates that fall towards the end follow the new length from the next step on.

    Raises:
        BadInputError: fewer than 0, or the run takes no steps.
    """
    name = length_field(config)
    if name is None:
        raise BadInputError(f"steps: {config.name} takes no steps, so its length cannot be set")
    if steps < 0:
        raise BadInputError(f"steps: expected 0 or more, got {steps}")
    changed: C = dataclasses.replace(config, **{name: steps})  # type: ignore[type-var]
    return changed

"""What every configuration of a training says, and how long its run is."""

from __future__ import annotations

import dataclasses
from typing import Protocol, TypeVar

from ml.errors import BadInputError

LENGTHS = ("rounds", "epochs", "steps")
"""Fields that say how long a run is; the first one that a configuration has counts."""


class RunConfig(Protocol):
    """What every configuration of a training says; a frozen dataclass."""

    @property
    def name(self) -> str:
        """Name of what is trained."""

    @property
    def version(self) -> str:
        """Version of what is trained."""

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""


C = TypeVar("C", bound=RunConfig)


def length_field(config: RunConfig) -> str | None:
    """The field that says how long a run is; None if it takes no steps."""
    return next((name for name in LENGTHS if hasattr(config, name)), None)


def with_length(config: C, steps: int) -> C:
    """The configuration with this number of steps.

    Rates that fall towards the end of a run follow its new length from the next step on.

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

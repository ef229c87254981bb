"""Initial weights of fine-tuning."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from ml.errors import WeightsError


def take_weights(network: nn.Module, stored: nn.Module, path: Path) -> None:
    """Copy the weights of a stored network.

    Raises:
        WeightsError: it is another architecture, or of other sizes.
    """
    expected, found = network.config, stored.config
    if type(stored) is not type(network) or found != expected:
        raise WeightsError(f"{path.name}: holds {found}, expected weights of {expected}")
    network.load_state_dict(stored.state_dict())

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
    wanted, held = network.config, stored.config
    if type(stored) is not type(network) or held != wanted:
        raise WeightsError(f"{path.name}: holds {held}, expected weights of {wanted}")
    network.load_state_dict(stored.state_dict())

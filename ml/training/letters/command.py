"""``python -m ml train letters``: the network that finds text burnt into images."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ml.imaging.revealing.network import DILATIONS, STRIDES, WEIGHTS
from ml.training.letters.grounds import learned_grounds
from ml.training.letters.scenes import SceneConfig, scene
from ml.types import ImageU8, JsonObject, Progress


@dataclass(frozen=True, slots=True)
class LetterTrainConfig:
    """How the network is trained."""

    scenes: SceneConfig = field(default_factory=SceneConfig)
    channels: tuple[int, ...] = (12, 24, 24, 24, 24)  # of the 3 x 3 convolutions
    steps: int = 9_000
    batch: int = 16
    rate: float = 3e-3  # greatest, of one cycle
    weight_decay: float = 1e-4
    hardest_share: float = 0.02  # of the places without text, counted once more
    seed: int = 0


class LetterSummary(TypedDict):
    """What a training came to; ``loss``: mean over its last tenth."""

    config: JsonObject
    weights: int
    loss: float
    written: str


class LetterNet(nn.Module):
    """``ml.imaging.revealing.network``, to be trained: (N, 3, H, W) in -1..1 to (N, H/4, W/4)."""

    def __init__(self, channels: Sequence[int]) -> None:
        super().__init__()
        sides = zip((3, *channels[:-1]), channels, STRIDES, DILATIONS, strict=True)
        layers = [
            nn.Conv2d(before, after, 3, stride, padding=dilation, dilation=dilation)
            for before, after, stride, dilation in sides
        ]
        self.layers = nn.ModuleList(layers)
        self.last = nn.Conv2d(channels[-1], 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Log odds of text."""
        for layer in self.layers:
            x = functional.relu(layer(x))
        answer: torch.Tensor = self.last(x)
        return answer[:, 0]

    def arrays(self) -> dict[str, np.ndarray]:
        """As ``LetterNetwork.of`` takes them, in half precision."""
        stored: dict[str, np.ndarray] = {}
        for number, layer in enumerate((*self.layers, self.last)):
            held = layer.state_dict()
            weight = held["weight"].cpu().numpy()
            rows = weight.transpose(2, 3, 1, 0).reshape(-1, weight.shape[0])
            stored[f"kernel{number}"] = rows.astype(np.float16)
            stored[f"bias{number}"] = held["bias"].cpu().numpy().astype(np.float16)
        return stored


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train letters``."""
    parser.add_argument("data", type=Path, help="folder of the development data")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="file to write (.npz)")
    usual = LetterTrainConfig()
    parser.add_argument("--steps", type=int, default=usual.steps, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=usual.seed, help="default: %(default)s")


def run(args: argparse.Namespace, progress: Progress) -> LetterSummary:
    """Draw text over development images, learn to find it, write the weights.

    Raises:
        BadInputError: no images there.
    """
    config = LetterTrainConfig(steps=args.steps, seed=args.seed)
    network, losses = learn(learned_grounds(args.data, seed=config.seed), config, progress)
    arrays: dict[str, Any] = network.arrays()
    np.savez_compressed(args.out, **arrays)
    last = losses[-max(1, len(losses) // 10) :]
    return {
        "config": asdict(config),
        "weights": sum(one.size for one in arrays.values()),
        "loss": float(np.mean(last)),
        "written": args.out.name,
    }


def learn(
    grounds: Sequence[ImageU8], config: LetterTrainConfig, progress: Progress
) -> tuple[LetterNet, list[float]]:
    """Train on scenes over these images; the network, and the loss of each step."""
    torch.manual_seed(config.seed)
    network = LetterNet(config.channels)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=config.rate, weight_decay=config.weight_decay
    )
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.rate, config.steps)
    losses: list[float] = []
    for step in range(config.steps):
        rng = np.random.default_rng((config.seed, 2, step))
        made = [scene(grounds, config.scenes, rng=rng, use="learn") for _ in range(config.batch)]
        pictures = torch.from_numpy(np.stack([image for image, _ in made])).permute(0, 3, 1, 2)
        targets = torch.from_numpy(np.stack([target for _, target in made]))
        loss = letter_loss(
            network(pictures.float() / 127.5 - 1.0), targets, hardest_share=config.hardest_share
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        cycle.step()
        losses.append(float(loss.detach()))
        progress(step + 1, config.steps, f"letters: loss {np.mean(losses[-100:]):.4f}")
    return network, losses


def letter_loss(
    logits: torch.Tensor, targets: torch.Tensor, *, hardest_share: float
) -> torch.Tensor:
    """Cross entropy of places with text, of those without, and of the hardest of these.

    Args:
        logits: (N, h, w). targets: (N, h, w) uint8: 0, 1, or ``scenes.UNSURE``: not counted.
    """
    wanted = (targets == 1).float()
    each = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    with_text, without = each[targets == 1], each[targets == 0]
    hardest = without.topk(max(1, int(len(without) * hardest_share))).values
    parts = [part.mean() for part in (with_text, without, hardest) if len(part)]
    return torch.stack(parts).sum()

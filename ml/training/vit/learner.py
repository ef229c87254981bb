"""Learner of the adapted vision transformer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ml.errors import BadInputError
from ml.keypoints.descriptors.vit_weights import read_network
from ml.networks.device import REFERENCE, Compute
from ml.networks.vit_adapter import VitMatcher
from ml.training.common.peers import peers
from ml.training.common.run import History
from ml.training.common.start import take_weights
from ml.training.common.steps import descend, half_cosine, set_rate, step_without_loss
from ml.training.vit.config import VitTrainConfig
from ml.training.vit.mining import (
    contrastive_loss,
    hardest_negatives,
    near_patches,
    patch_pairs,
    random_negatives,
    sample_map,
    triplet_loss,
)
from ml.training.vit.pairs import MaskedStill, NovelViewPair, draw_pair
from ml.training.vit.score import score_pairs

_VALIDATION = 1 << 20
"""Seed of the validation pairs, different from those of the steps."""


class VitLearner:
    """Learner of the transformer over stills, with its validation pairs."""

    def __init__(
        self,
        config: VitTrainConfig,
        stills: Sequence[MaskedStill],
        held_out: Sequence[MaskedStill],
        *,
        start: Path | None = None,
        compute: Compute = REFERENCE,
    ) -> None:
        self.config, self.stills, self.device = config, stills, compute.device
        self.compute = compute
        self.batch = config.batch
        self.network = VitMatcher(config.network)
        if start is not None:
            take_weights(self.network, read_network(start)[0], start)
        if config.crop_px % self.network.patch_px:
            raise BadInputError(
                f"crop_px: expected a multiple of the patch, {self.network.patch_px} px,"
                f" got {config.crop_px}"
            )
        self.network.backbone.requires_grad_(config.train_backbone)
        trained = [p for p in self.network.parameters() if p.requires_grad]
        if not trained:
            raise BadInputError(
                "nothing to train: there is no adapter layer, and the backbone is frozen"
            )
        self.network.to(self.device)
        self.modules = {"network": self.network}
        self.optimiser = torch.optim.Adam(trained, lr=config.rates[0])
        self.held_out = self._validation_pairs(held_out)

    def step(self, number: int, history: History) -> float:
        """Take a step over ``batch`` synthetic pairs; validate every ``validate_every`` steps."""
        config, step_count = self.config, number + 1
        if number == 0 and "validation" not in history:  # a step that did not fit is repeated
            self._validate(0, history)
        loss = self._descend(number)
        if loss is None:  # no pair of this step shares enough patches to learn from
            loss = history["loss"][-1] if history["loss"] else config.margin
        if step_count % config.validate_every == 0 or step_count == config.last_step:
            self._validate(step_count, history)
        self._record_held_out(history)
        return loss

    def _descend(self, step: int) -> float | None:
        set_rate(self.optimiser, self._learning_rate(step))
        rng = np.random.default_rng((self.config.seed, peers().draw_number(step)))
        pairs, pixels = self._draw_batch(rng)
        self.network.train()
        if not self.config.train_backbone:
            self.network.backbone.eval()
        source, target = self._maps(pixels)
        losses = [
            loss
            for i, pair in enumerate(pairs)
            if (loss := self._loss(source[i], target[i], pair, step, i)) is not None
        ]
        if not losses:
            step_without_loss(self.optimiser)
            return None
        return descend(self.optimiser, torch.stack(losses).mean())

    def _draw_batch(self, rng: np.random.Generator) -> tuple[list[NovelViewPair], Tensor]:
        """Pairs of a step, and their pixels (2 * B, 3, h, w), the sources first."""
        pairs = [self._draw(rng, self.stills) for _ in range(self.batch)]
        sources, views = [pair.source for pair in pairs], [pair.view.image for pair in pairs]
        return pairs, to_batch(sources + views)

    def _maps(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """(B, E, h, w) descriptors of the sources and of their views, in one batch."""
        with self.compute.training_precision():
            maps = self.network(pixels.to(self.device))
        source, target = maps.float().chunk(2)
        return source, target

    def _loss(
        self, source: Tensor, target: Tensor, pair: NovelViewPair, step: int, number: int
    ) -> Tensor | None:
        """Loss of one pair; None if it holds fewer than two patch pairs."""
        config, patch_px = self.config, self.network.patch_px
        pairs = patch_pairs(
            pair.view, patch_px=patch_px, valid=pair.valid, cycle_px=config.cycle_px or None
        )
        if len(pairs) < 2:
            return None
        rows = target.flatten(1).T
        anchor = source.flatten(1).T[torch.from_numpy(pairs.source).to(self.device)]
        if config.sampled_positive:
            xy_t = torch.from_numpy(pairs.xy_t).to(self.device)
            positive = sample_map(target, xy_t, patch_px=patch_px)
        else:
            positive = rows[torch.from_numpy(pairs.target).to(self.device)]
        shape = (target.shape[1], target.shape[2])
        near = torch.from_numpy(near_patches(pairs.xy_t, shape, patch_px, config.near_patches))
        near = near.to(self.device)
        if step < config.warmup_steps:
            return contrastive_loss(anchor, positive, rows, near, temperature=config.temperature)
        if config.hard_negatives:
            negative = hardest_negatives(anchor, positive, rows, near)
        else:
            generator = torch.Generator().manual_seed(
                (config.seed * 1_000_003 + step) * config.batch + number
            )
            negative = random_negatives(near, generator)
        return triplet_loss(anchor, positive, rows[negative], margin=config.margin)

    def _learning_rate(self, step: int) -> float:
        config = self.config
        first = config.bootstrap_epochs * config.steps
        if step < first:
            return config.rates[0]
        if not config.decay:
            return config.rates[1]
        share = (step - first) / max(1, config.total_steps - first)
        return config.rates[1] * max(0.05, half_cosine(share))

    def _draw(self, rng: np.random.Generator, stills: Sequence[MaskedStill]) -> NovelViewPair:
        config = self.config
        return draw_pair(
            rng,
            stills[int(rng.integers(len(stills)))],
            crop_px=config.crop_px,
            zoom_out=config.zoom_out,
            motion=config.motion if config.novel_view else None,
            look=config.look if config.photometric else None,
            relief=config.depth_relief,
        )

    def _validation_pairs(self, held_out: Sequence[MaskedStill]) -> list[NovelViewPair]:
        """Fixed pairs with full motion and full photometric changes."""
        if not held_out:
            return []
        rng = np.random.default_rng((self.config.seed, _VALIDATION))
        return [
            draw_pair(
                rng,
                held_out[number % len(held_out)],
                crop_px=self.config.crop_px,
                zoom_out=self.config.zoom_out,
                motion=self.config.motion,
                look=self.config.look,
                relief=self.config.depth_relief,
            )
            for number in range(self.config.validation_pairs)
        ]

    def _validate(self, step: int, history: History) -> None:
        if self.held_out:
            score = score_pairs(self.network, self.held_out)
            history.setdefault("validation", []).append({"step": float(step), **score})

    def _record_held_out(self, history: History) -> None:
        """Record the last precision once a step, for the progress bar and the curve."""
        if self.held_out and "validation" in history:
            precision = history["validation"][-1]["precision"]
            history.setdefault("held_out_precision", []).append(precision)


def to_batch(images: Sequence[np.ndarray]) -> Tensor:
    """(H, W, 3) uint8 images of one size to (B, 3, H, W) float32 in [0, 1]."""
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float().div(255)

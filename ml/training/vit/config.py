"""Configuration of the training of the adapted vision transformer."""

from __future__ import annotations

from dataclasses import dataclass, field

from ml.networks.vit_adapter import SmallVitConfig, VitConfig
from ml.training.vit.novel_view import MotionConfig
from ml.training.vit.pairs import LookConfig


@dataclass(frozen=True, slots=True)
class VitTrainConfig:
    """One training run; the defaults are those of the shipped weights.

    For a pretrained backbone see ``paper_config``.
    """

    name: str = "vit"  # of the descriptor
    version: str = "1.0"  # of the descriptor
    sources: tuple[str, ...] = ("endoscopy/laparoscopy-stills",)  # files or folders in the data
    held_out: tuple[str, ...] = ("00008", "00011")  # prefixes of names held out for validation
    working_px: int = 640  # longer side of a still when views are cut from it
    zoom_out: tuple[float, float] = (0.8, 1.8)  # side covered by a crop, relative to its own
    crop_px: int = 160  # side of both views, a multiple of the patch
    batch: int = 4  # pairs a step
    epochs: int = 12  # paper: 100
    steps: int = 80  # an epoch
    stop_after: int = 720  # steps after which the run ends early; 0: never
    bootstrap_epochs: int = 3  # at the first of ``rates`` (paper: 3)
    rates: tuple[float, float] = (1e-3, 5e-4)  # Adam (paper: 1e-4, then 5e-5)
    decay: bool = True  # a half cosine over the second rate, down to a twentieth; paper: constant
    margin: float = 1.0  # m of eq. 13
    train_backbone: bool = True  # frozen in the paper, whose backbone is pretrained
    warmup_steps: int = 480  # of the contrastive loss, before the triplets
    temperature: float = 0.07  # of the contrastive loss
    hard_negatives: bool = True  # eq. 15; off: negatives at random
    cycle_px: float = 1.5  # cycle consistency of pairs, in pixels; 0: off
    sampled_positive: bool = True  # P at p_gt exactly; off: the patch that holds p_gt (paper)
    near_patches: float = (
        1.0  # patches within this distance of p_gt are no negatives; 0: only its own (paper)
    )
    photometric: bool = True  # random looks of the novel view
    novel_view: bool = True  # rigid motion by depth; off: photometric shifts only
    depth_relief: float = 0.35  # of the synthetic depth
    depth_inverse: bool = False  # meaning of the DPT head's output, see ``DptDepth``
    validation_pairs: int = 24  # synthetic pairs of the held-out stills
    validate_every: int = 160  # steps
    checkpoint_every: int = 80  # steps
    seed: int = 0
    look: LookConfig = field(default_factory=LookConfig)
    motion: MotionConfig = field(default_factory=MotionConfig)
    network: VitConfig = field(default_factory=lambda: VitConfig(small=SmallVitConfig()))

    @property
    def total_steps(self) -> int:
        """Number of steps over which the learning rate falls."""
        return self.epochs * self.steps

    @property
    def last_step(self) -> int:
        """Number of steps that are taken."""
        return min(self.stop_after or self.total_steps, self.total_steps)


def paper_config(backbone: str) -> VitTrainConfig:
    """Settings of the paper for a pretrained backbone, which stays frozen.

    Args:
        backbone: folder or hub name of a transformers ViT of patches of 14 (DINOv2), 8 or 16 px.
    Source: dinov2-adaptation-endoscopic-matching, sections III-C and III-F. It gives neither the
        size of the training images, nor the steps of an epoch, nor the heads of the layer.
    """
    return VitTrainConfig(
        network=VitConfig(backbone=backbone),
        train_backbone=False,
        crop_px=224,
        zoom_out=(0.8, 1.5),
        epochs=100,
        stop_after=0,
        rates=(1e-4, 5e-5),
        decay=False,
        warmup_steps=0,
        sampled_positive=False,
        near_patches=0.0,
    )

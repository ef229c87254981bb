"""Fine-tuning of the portal's encoders on a lab's training set.

For histology the patch encoder is trained further without labels, and the metric is learned again;
for endoscopy the vocabulary is fitted to the lab's stills, without steps.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.networks.patch_cnn import STAGES, PatchCnn
from ml.roi.embed import RoiEncoder
from ml.roi.encoders.patch_cnn import PatchCnnEncoder, save_patch_cnn
from ml.roi.keypoints.encoder import KeypointEncoder
from ml.roi.keypoints.weights import save_keypoint_encoder
from ml.roi.protocol import RegionEncoder
from ml.roi.weights import save_encoder
from ml.training.common.run import TrainingRun
from ml.training.roi.encoder.command import train_roi
from ml.training.roi.encoder.config import RoiTrainConfig
from ml.training.roi.endoscopy import EndoscopyTrainConfig, stills_of, train_endoscopy
from ml.training.roi.patches.command import train_patches
from ml.training.roi.patches.config import PatchTrainConfig
from ml.types import Progress, no_progress

CHECKPOINT_EVERY = 20
"""Steps between checkpoints: about a minute of two cores."""
MAX_BYTES = 2**30
"""Largest size of the pictures in memory; a worker may take three times as much."""
_BYTES_PER_PIXEL = (
    3 * 4 / 3 * 5 / 4
)  # bytes a pixel of a picture: its mips, and blocks of twice the size
_GRAPH_STEPS = 200  # of the graph layers, if the encoder has any
PATCHES = PatchTrainConfig(
    name="patches",
    atlas="",
    batch=96,  # half of the first training's: takes seconds on a CPU
    learning_rate=3e-4,  # a fifth of the rate of the first training, because this is fine-tuning
    warmup=20,  # steps
    checkpoint_every=CHECKPOINT_EVERY,
)
"""Configuration of the patch encoder's fine-tuning; sources and length are the lab's."""


@dataclass(frozen=True, slots=True)
class LabTrained:
    """The result of a lab's training.

    Attributes:
        weights: the encoder's file.
        regions, patients: numbers of those learned from.
        losses, held_out: loss of each step, on training and on held-out patients; empty without
            steps.
        stopped_early: whether the hours were over before the steps.
    """

    weights: Path
    losses: tuple[float, ...]
    held_out: tuple[float, ...]
    stopped_early: bool
    regions: int
    patients: int


def train_lab_encoder(
    base: RegionEncoder,
    data: Path,
    work: Path,
    *,
    steps: int,
    hours: float | None = None,
    patches: PatchTrainConfig | None = None,
    progress: Progress = no_progress,
) -> LabTrained:
    """Train an encoder further on a lab's regions; called again, it resumes.

    Args:
        base: encoder to start from.
        data: folder written by ``manage.py training_set``.
        work: folder for checkpoints and weights.
        steps: of the patch encoder.
        hours: after which it ends with fewer.
        patches: configuration of the patch encoder's training; None for ``PATCHES``.
        progress: called after every step; may raise to stop.
    Raises:
        BadInputError: nothing to learn from, a loss that is not finite; or see
            ``require_trainable``.
    """
    work.mkdir(parents=True, exist_ok=True)
    if isinstance(base, KeypointEncoder):
        return _endoscopy(base, data, work, progress)
    base_weights, patch_encoder = _has_own_patch_network(base)
    config = _config(data, patches or PATCHES, steps)
    return _histology(base_weights, patch_encoder, data, work, config, hours, progress)


def require_trainable(base: RegionEncoder) -> None:
    """Refuse an encoder that cannot be trained further.

    Raises:
        BadInputError: its features are not our own.
    """
    if not isinstance(base, KeypointEncoder):
        _has_own_patch_network(base)


def _has_own_patch_network(base: RegionEncoder) -> tuple[RoiEncoder, PatchCnnEncoder]:
    if not isinstance(base, RoiEncoder) or not isinstance(base.patches, PatchCnnEncoder):
        raise BadInputError(
            f"{base.name}: only encoders over our own patch encoder can be trained further; a "
            "metric can be learned over any"
        )
    return base, base.patches


def _config(data: Path, patches: PatchTrainConfig, steps: int) -> PatchTrainConfig:
    path = data / "patches.json"
    if not path.is_file():
        raise BadInputError("there is no region of a slide or still to learn from")
    config = config_from_file(patches, path)
    return dataclasses.replace(
        config,
        slides=within_memory(config.slides, data, MAX_BYTES),
        held_out=within_memory(config.held_out, data, MAX_BYTES // 4),
        steps=steps,
        cooldown=max(1, steps // 4),
    )


def within_memory(
    slides: Sequence[tuple[str, str, float]], data: Path, max_bytes: int
) -> tuple[tuple[str, str, float], ...]:
    """Pictures that fit into memory, of each patient in turn."""
    of_patient: dict[str, list[tuple[str, str, float]]] = {}
    for name, patient, mpp in slides:
        of_patient.setdefault(patient, []).append((name, patient, mpp))
    turns = sorted((turn, slide) for rows in of_patient.values() for turn, slide in enumerate(rows))
    chosen: list[tuple[str, str, float]] = []
    used_bytes = 0.0
    for _, slide in turns:
        with Image.open(data / slide[0]) as image:
            used_bytes += image.width * image.height * _BYTES_PER_PIXEL
        if chosen and used_bytes > max_bytes:
            break
        chosen.append(slide)
    return tuple(chosen)


def _histology(  # noqa: PLR0917
    base: RoiEncoder,
    patch_encoder: PatchCnnEncoder,
    data: Path,
    work: Path,
    config: PatchTrainConfig,
    hours: float | None,
    progress: Progress,
) -> LabTrained:
    # Training uses another readout of the same weights.
    sizes = dataclasses.replace(patch_encoder.network.config, readout=STAGES)
    config = dataclasses.replace(config, network=sizes)
    network = PatchCnn(sizes)
    network.load_state_dict(patch_encoder.network.state_dict())
    start = work / "start.safetensors"
    if not start.is_file():
        save_patch_cnn(start, name=config.name, version=base.version, network=network)
    run = TrainingRun(
        config,
        work / "patches",
        start=start,
        hours=hours,
        compute=patch_encoder.compute,
        progress=progress,
    )
    train_patches(run, data=data)
    _require_finite(run)
    graph = RoiTrainConfig(
        name=base.name,
        version=base.version,
        atlas="",
        slides=config.slides,
        sources=tuple(name for name, _, _ in config.slides),
        held_out=tuple(name for name, _, _ in config.held_out),
        steps=_GRAPH_STEPS,
        checkpoint_every=CHECKPOINT_EVERY,
        encoder=base.config,
    )
    base_weights = _save(base, work / "base.safetensors") if base.config.network.layers else None
    roi = TrainingRun(
        graph, work / "roi", start=base_weights, compute=patch_encoder.compute, progress=progress
    )
    train_roi(roi, data=data, patch_weights=run.weights)
    return _result(roi.weights, run, [patient for _, patient, _ in config.slides])


def _save(base: RoiEncoder, path: Path) -> Path:
    if not path.is_file():
        save_encoder(
            path,
            name=base.name,
            version=base.version,
            config=base.config,
            network=base.network,
            patches=base.patches,
        )
    return path


def _endoscopy(base: KeypointEncoder, data: Path, work: Path, progress: Progress) -> LabTrained:
    path = data / "endoscopy.json"
    if not path.is_file():
        raise BadInputError("there is no region of a video or mosaic to learn from")
    start = work / "start.safetensors"
    if not start.is_file():
        save_keypoint_encoder(
            start, name=base.name, version=base.version, config=base.config, network=base.network
        )
    config = dataclasses.replace(
        config_from_file(EndoscopyTrainConfig(), path),
        name=base.name,
        version=base.version,
        encoder=base.config,
    )
    run = TrainingRun(config, work / "endoscopy", start=start, progress=progress)
    train_endoscopy(run, data=data)
    files = stills_of(config, data)[: config.regions]
    return _result(run.weights, run, [path.name.partition("-")[0] for path in files])


def _require_finite(run: TrainingRun[Any]) -> None:
    for line in (run.losses, run.history.get("held_out", [])):
        wrong = [step for step, loss in enumerate(line, 1) if not math.isfinite(loss)]
        if wrong:
            raise BadInputError(
                f"the training failed: its loss at step {wrong[0]:,} is not a number"
            )


def _result(weights: Path, run: TrainingRun[Any], patients: Sequence[str]) -> LabTrained:
    """Result of a run; ``patients`` are those of each picture."""
    history = json.loads((run.out / "log.json").read_text(encoding="utf-8"))["history"]
    return LabTrained(
        weights,
        tuple(history.get("loss", ())),
        tuple(history.get("held_out", ())),
        run.stopped_early,
        regions=len(patients),
        patients=len(set(patients)),
    )

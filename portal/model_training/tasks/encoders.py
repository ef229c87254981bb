"""Job that trains a lab's own encoder and compares it on held-out patients."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ml.errors import BadInputError, CancelledError, MlError
from ml.files import replacing, write_json, write_npz
from ml.index.metric_learning.dataset import held_out_mask, require_sufficient_data
from ml.index.metric_learning.training import evaluate_vectors
from ml.types import ArrayBool, ArrayF32
from portal.annotations.models import Roi
from portal.core.errors import PortalError, StorageFullError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.embeddings.tasks.lab_encoders import PART_ROIS
from portal.embeddings.tasks.regions import encoder_ready, regions_open
from portal.model_training.models import Learning
from portal.model_training.selectors.learnings import TRAIN_KIND, learning_to_run
from portal.model_training.selectors.results import TrainingSummary
from portal.model_training.selectors.training_data import (
    TrainingData,
    search_baseline,
    training_data,
)
from portal.model_training.services.folders import (
    TrainingFolder,
    learning_folder_claim,
    learning_folder_drop,
)
from portal.model_training.services.results import learning_encoder_save, training_time_add
from portal.model_training.services.training_sets import training_set_write

if TYPE_CHECKING:
    from ml.roi.protocol import RegionEncoder
    from ml.training.roi.lab_encoder import LabTrained

MAX_TRAINED_REGIONS = 2_000
"""Largest number of training regions: one or two gigabytes of pictures."""
PICTURE_PX = 1_024
"""Largest side of a training picture, limited by memory."""
MAX_POINTS = 200  # of the stored loss curves


@job_task(
    TRAIN_KIND,
    queue="gpu",
    title="Retrain the search model",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def encoder_learn(context: JobContext, *, learning_id: str) -> JobResult:
    """Train, embed the archive and compare.

    Stages and checkpoints are stored in a scratch folder until the job ends: after an interruption,
    the next attempt continues.
    """
    learning = learning_to_run(uuid.UUID(learning_id))
    if learning is None:
        return {"skipped": "deleted"}
    if learning.result is not None:
        return {"skipped": "already learned"}
    context.progress(0, 0, "reading")
    try:
        with learning_folder_claim(learning) as claim:
            better = _train_and_compare(context, learning, claim)
    except (CancelledError, StorageFullError):
        raise
    except MlError as error:
        raise UserError(str(error), code=error.code) from error
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error
    learning_folder_drop(learning)
    return {"outcome": "better" if better else "not better"}


def _train_and_compare(context: JobContext, learning: Learning, claim: TrainingFolder) -> bool:
    from ml.networks.device import device_report, select_compute
    from ml.roi.load import read_encoder
    from ml.training.roi.lab_encoder import require_trainable

    folder = claim.path
    base, row = encoder_ready(learning.kind)
    if row.pk != learning.base_id:
        raise UserError(
            "The portal's search model has changed. Learn from the archive again.",
            code="encoder-changing",
        )
    require_trainable(base)
    data = training_data(learning.lab_id, learning.base)
    held_out = _split(data, folder)
    require_sufficient_data(data.material, held_out)
    _training_set(context, learning, data, held_out, folder)
    trained = _train_encoder(context, learning, base, claim)
    network = read_encoder(trained.weights)
    data, held_out, vectors = _embed_all(context, network, data, held_out, folder)
    baseline = search_baseline(learning.lab_id, learning.base, data)
    data, held_out, vectors = (
        data.part(baseline.rows),
        held_out[baseline.rows],
        vectors[baseline.rows],
    )
    steps = len(trained.losses)
    outcome = evaluate_vectors(
        data.material,
        held_out,
        vectors,
        before=baseline.vectors,
        chosen=f"{steps:,} steps from {learning.base}" if steps else f"fitted from {learning.base}",
        learned_regions=trained.regions,
        learned_patients=trained.patients,
        progress=context.progress,
    )
    summary = TrainingSummary(
        regions=trained.regions,
        patients=trained.patients,
        device=str(device_report(str(select_compute().device))),
        steps=steps,
        loss=_downsample(trained.losses),
        held_out=_downsample(trained.held_out),
        stopped_early=trained.stopped_early,
    )
    with context.effect():
        claim.require()
        learning_encoder_save(
            learning=learning,
            outcome=outcome,
            data=data,
            baseline=baseline,
            weights=trained.weights.read_bytes(),
            dim=network.dim,
            training=summary,
        )
    return outcome.is_better


def _split(data: TrainingData, folder: Path) -> ArrayBool:
    """Held-out regions (N,): patients chosen by the first attempt, even if patients were added
    since.

    Otherwise a training patient of an earlier attempt could become held out.
    """
    path, patients = folder / "split.json", data.material.patients
    if not path.is_file():
        write_json(path, sorted(set(patients[held_out_mask(patients)].tolist())))
    return np.isin(patients, json.loads(path.read_text(encoding="utf-8")))


def _training_set(
    context: JobContext, learning: Learning, data: TrainingData, held_out: ArrayBool, folder: Path
) -> None:
    """Write the training set like ``manage.py training_set``, as the person who requested it."""
    if learning.user is None:
        raise UserError("The person who asked for it no longer has an account.", code="forbidden")
    half = folder / "set-half"
    if (folder / "set").is_dir():
        return
    shutil.rmtree(half, ignore_errors=True)
    training_set_write(
        lab=learning.lab,
        user=learning.user,
        out=half,
        modality=learning.kind,
        held_out=set(data.material.patients[held_out].tolist()),
        roi_ids=_round_robin(data),
        largest_px=PICTURE_PX,
        progress=context.progress,
    )
    half.rename(folder / "set")


def _round_robin(data: TrainingData) -> list[uuid.UUID]:
    """Newest regions, taking one patient after the other."""
    turn: dict[str, int] = {}
    placed: list[tuple[int, int, uuid.UUID]] = []
    for at in range(len(data.rois) - 1, -1, -1):
        patient = str(data.material.patients[at])
        turn[patient] = turn.get(patient, 0) + 1
        placed.append((turn[patient], len(placed), data.rois[at]))
    return [roi for _, _, roi in sorted(placed)[:MAX_TRAINED_REGIONS]]


def _train_encoder(
    context: JobContext, learning: Learning, base: RegionEncoder, claim: TrainingFolder
) -> LabTrained:
    from ml.training.roi.lab_encoder import LabTrained, train_lab_encoder

    folder = claim.path
    path, weights = folder / "trained.json", folder / "encoder.safetensors"
    if not path.is_file():
        hours = (learning.hours or 0) - learning.trained_s / 3600
        trained = train_lab_encoder(
            base,
            folder / "set",
            folder / "work",
            steps=learning.steps or 0,
            hours=max(hours, 1e-9),  # without time left, the training ends at once
            progress=_Checkpoints(context, learning, claim),
        )
        with replacing(weights) as written:
            shutil.copyfile(trained.weights, written)
        write_json(path, {**asdict(trained), "weights": ""})
    record = json.loads(path.read_text(encoding="utf-8"))
    lines = {name: tuple(record[name]) for name in ("losses", "held_out")}
    return LabTrained(**{**record, **lines, "weights": weights})


@dataclass(slots=True)
class _Checkpoints:
    """Report steps; at a checkpoint, save the training time and yield to other jobs."""

    context: JobContext
    learning: Learning
    claim: TrainingFolder
    since_s: float = 0.0

    def __post_init__(self) -> None:
        self.since_s = time.monotonic()

    def __call__(self, done: int, total: int, phase: str) -> None:
        from ml.training.roi.lab_encoder import CHECKPOINT_EVERY

        self.context.progress(done, total, phase)
        if not phase.startswith("training") or done % CHECKPOINT_EVERY:
            return
        now_s = time.monotonic()
        with self.context.part():
            training_time_add(learning=self.learning, seconds=now_s - self.since_s)
        self.since_s = now_s
        self.claim.require()
        self.context.give_way()


def _embed_all(
    context: JobContext,
    network: RegionEncoder,
    data: TrainingData,
    held_out: ArrayBool,
    folder: Path,
) -> tuple[TrainingData, ArrayBool, ArrayF32]:
    """Data whose regions the encoder could embed, and their vectors (N, D)."""
    vectors = _load_vectors(folder)
    roi_count = 0
    for canvas in _rois_by_canvas(data.rois):
        for start in range(0, len(canvas), PART_ROIS):
            rois = canvas[start : start + PART_ROIS]
            missing = [roi for roi in rois if _key(roi) not in vectors]
            report_progress = partial(
                context.progress, roi_count, len(data.rois), "embedding regions"
            )
            report_progress()
            roi_count += len(rois)
            if missing:
                new_vectors = _embed_part(network, missing, report_progress)
                write_npz(folder / f"vectors-{len(vectors):07d}-{missing[0].pk}.npz", new_vectors)
                vectors |= new_vectors
                with context.part():
                    pass  # resets the count of lost attempts
                context.give_way()
    keys = {str(key).partition(":")[0]: vector for key, vector in vectors.items()}
    rows = np.array([str(roi) in keys and len(keys[str(roi)]) > 0 for roi in data.rois], bool)
    data = data.part(rows)
    return data, held_out[rows], np.array([keys[str(roi)] for roi in data.rois], np.float32)


def _load_vectors(folder: Path) -> dict[str, ArrayF32]:
    vectors: dict[str, ArrayF32] = {}
    for path in sorted(folder.glob("vectors-*.npz")):
        with np.load(path) as file:
            vectors |= {name: file[name] for name in file.files}
    return vectors


def _rois_by_canvas(ids: Collection[uuid.UUID]) -> Iterator[list[Roi]]:
    """Existing ROIs by canvas, in the order of their frames."""
    rois = Roi.objects.live().select_related("canvas", "lab").filter(pk__in=ids)
    ordered = rois.order_by("canvas_id", "frame_pts", "pk")
    for _, canvas_rois in groupby(ordered.iterator(chunk_size=500), key=lambda roi: roi.canvas_id):
        yield list(canvas_rois)


def _key(roi: Roi) -> str:
    return f"{roi.pk}:{roi.version}"


def _embed_part(
    network: RegionEncoder, rois: list[Roi], report_progress: Callable[[], None]
) -> dict[str, ArrayF32]:
    """Vectors by ROI and version; empty if it cannot be embedded."""
    none = np.empty(0, np.float32)
    try:
        with regions_open(network, rois[0].canvas) as embed:
            embedded = embed(rois, lambda *_: report_progress())
    except CancelledError:
        raise
    except (MlError, FileNotFoundError):
        return {_key(roi): none for roi in rois}
    return {
        _key(roi): none if isinstance(result, BadInputError) else result.vector
        for roi, result in zip(rois, embedded, strict=True)
    }


def _downsample(line: tuple[float, ...]) -> tuple[float, ...]:
    chosen = np.unique(
        np.linspace(0, len(line) - 1, min(MAX_POINTS, len(line))).round().astype(int)
    )
    return tuple(round(line[at], 5) for at in chosen)

"""An encoder of the lab's own, trained on its archive and compared on patients kept aside."""

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
from ml.index.learning.archive import judge_vectors
from ml.index.learning.material import kept_aside, require_enough
from ml.types import ArrayBool, ArrayF32
from portal.annotations.models import Roi
from portal.core.errors import PortalError, StorageFullError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task
from portal.retrieval import selectors, services
from portal.retrieval.models import CANVASES_OF, EncoderKind, Learning
from portal.retrieval.selectors import TRAIN_KIND, LabMaterial, TrainingTold
from portal.retrieval.services import TrainingFolder
from portal.retrieval.tasks.own import PART
from portal.retrieval.tasks.regions import encoder_ready, regions_open

if TYPE_CHECKING:
    from ml.roi import RegionEncoder
    from ml.training.roi.lab_encoder import LabTrained

TRAINED_MOST = 2_000
"""Regions whose pictures are written, of each patient in turn: a gigabyte or two of a disk."""
PICTURE_PX = 1_024
"""Largest side of such a picture: most of what is larger would not fit into memory."""
POINTS = 200  # of the lines that are kept of a training: a page draws no more


@task(
    TRAIN_KIND,
    queue="gpu",
    title="Train an encoder on the archive",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def encoder_learn(context: JobContext, *, learning_id: str) -> JobResult:
    """Train, embed the archive with it and compare.

    Each stage and checkpoint is kept in a scratch folder, which is removed with the job: after it
    was killed, or stopped for others, the next attempt continues there.
    """
    learning = selectors.learning_to_run(uuid.UUID(learning_id))
    if learning is None:
        return {"skipped": "deleted"}
    if learning.result is not None:
        return {"skipped": "already learned"}
    context.progress(0, 0, "reading")
    try:
        with services.learning_folder_claim(learning) as claimed:
            better = _learned(context, learning, claimed)
    except (CancelledError, StorageFullError):
        raise
    except MlError as error:
        raise UserError(str(error), code=error.code) from error
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error
    services.learning_folder_drop(learning)
    return {"outcome": "better" if better else "not better"}


def _learned(context: JobContext, learning: Learning, claimed: TrainingFolder) -> bool:
    from ml.networks.device import chosen_compute, device_report
    from ml.roi import encoder_of_file
    from ml.training.roi.lab_encoder import require_trainable

    folder = claimed.path
    base, row = encoder_ready(EncoderKind(learning.kind))
    if row.pk != learning.base_id:
        raise UserError(
            "The portal has changed its encoder in the meantime. Learn from the archive again.",
            code="encoder-changing",
        )
    require_trainable(base)
    of = selectors.lab_material(learning.lab_id, learning.base)
    aside = _split(of, folder)
    require_enough(of.material, aside)
    _training_set(context, learning, of, aside, folder)
    trained = _trained(context, learning, base, claimed)
    network = encoder_of_file(trained.weights)
    of, aside, vectors = _embedded(context, network, of, aside, folder)
    before = selectors.searched_by(learning.lab_id, learning.base, of)
    of, aside, vectors = of.part(before.rows), aside[before.rows], vectors[before.rows]
    steps = len(trained.losses)
    found = judge_vectors(
        of.material,
        aside,
        vectors,
        before=before.vectors,
        chosen=f"{steps:,} steps from {learning.base}" if steps else f"fitted from {learning.base}",
        learned_regions=trained.regions,
        learned_patients=trained.patients,
        progress=context.progress,
    )
    told = TrainingTold(
        regions=trained.regions,
        patients=trained.patients,
        device=str(device_report(str(chosen_compute().device))),
        steps=steps,
        loss=_thinned(trained.losses),
        held_out=_thinned(trained.held_out),
        stopped_early=trained.stopped_early,
    )
    with context.effect():
        claimed.require()
        services.learning_trained_save(
            learning=learning,
            found=found,
            of=of,
            before=before,
            weights=trained.weights.read_bytes(),
            dim=network.dim,
            training=told,
        )
    return found.is_better


def _split(of: LabMaterial, folder: Path) -> ArrayBool:
    """(N,) regions of patients kept aside: those that the first attempt kept, whoever came since.

    Otherwise a patient who was learned from could be one of them once others have come.
    """
    path, patients = folder / "split.json", of.material.patients
    if not path.is_file():
        write_json(path, sorted(set(patients[kept_aside(patients)].tolist())))
    return np.isin(patients, json.loads(path.read_text(encoding="utf-8")))


def _training_set(
    context: JobContext, learning: Learning, of: LabMaterial, aside: ArrayBool, folder: Path
) -> None:
    """As ``manage.py training_set`` writes it, by order of who asked for the encoder."""
    if learning.user is None:
        raise UserError("The person who asked for it no longer has an account.", code="forbidden")
    half = folder / "set-half"
    if (folder / "set").is_dir():
        return
    shutil.rmtree(half, ignore_errors=True)
    services.training_set_write(
        lab=learning.lab,
        user=learning.user,
        out=half,
        kinds=[str(kind) for kind in CANVASES_OF[EncoderKind(learning.kind)]],
        held_out=set(of.material.patients[aside].tolist()),
        only=_in_turn(of),
        largest_px=PICTURE_PX,
        progress=context.progress,
    )
    half.rename(folder / "set")


def _in_turn(of: LabMaterial) -> list[uuid.UUID]:
    """The newest regions, of each patient in turn."""
    turn: dict[str, int] = {}
    placed: list[tuple[int, int, uuid.UUID]] = []
    for at in range(len(of.rois) - 1, -1, -1):
        patient = str(of.material.patients[at])
        turn[patient] = turn.get(patient, 0) + 1
        placed.append((turn[patient], len(placed), of.rois[at]))
    return [roi for _, _, roi in sorted(placed)[:TRAINED_MOST]]


def _trained(
    context: JobContext, learning: Learning, base: RegionEncoder, claimed: TrainingFolder
) -> LabTrained:
    from ml.training.roi.lab_encoder import LabTrained, train_lab_encoder

    folder = claimed.path
    path, weights = folder / "trained.json", folder / "encoder.safetensors"
    if not path.is_file():
        hours = (learning.hours or 0) - learning.trained_s / 3600
        trained = train_lab_encoder(
            base,
            folder / "set",
            folder / "work",
            steps=learning.steps or 0,
            hours=max(hours, 1e-9),  # an attempt that has none left ends with what it had
            progress=_Checkpoints(context, learning, claimed),
        )
        with replacing(weights) as written:
            shutil.copyfile(trained.weights, written)
        write_json(path, {**asdict(trained), "weights": ""})
    said = json.loads(path.read_text(encoding="utf-8"))
    lines = {name: tuple(said[name]) for name in ("losses", "held_out")}
    return LabTrained(**{**said, **lines, "weights": weights})


@dataclass(slots=True)
class _Checkpoints:
    """Reports the steps; at a checkpoint what was done lasts, and others may have their turn."""

    context: JobContext
    learning: Learning
    claimed: TrainingFolder
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
            services.learning_trained_for(learning=self.learning, seconds=now_s - self.since_s)
        self.since_s = now_s
        self.claimed.require()
        self.context.give_way()


def _embedded(
    context: JobContext,
    network: RegionEncoder,
    of: LabMaterial,
    aside: ArrayBool,
    folder: Path,
) -> tuple[LabMaterial, ArrayBool, ArrayF32]:
    """The material whose regions the encoder could embed, and (N, D) their vectors by it."""
    known = _kept(folder)
    done = 0
    for canvas in _by_canvas(of.rois):
        for start in range(0, len(canvas), PART):
            rois = canvas[start : start + PART]
            lacking = [roi for roi in rois if _key(roi) not in known]
            tell = partial(context.progress, done, len(of.rois), "embedding regions")
            tell()
            done += len(rois)
            if lacking:
                made = _part(network, lacking, tell)
                write_npz(folder / f"vectors-{len(known):07d}-{lacking[0].pk}.npz", made)
                known |= made
                with context.part():
                    pass  # it lasts: attempts that were lost before no longer count
                context.give_way()
    keys = {str(key).partition(":")[0]: vector for key, vector in known.items()}
    rows = np.array([str(roi) in keys and len(keys[str(roi)]) > 0 for roi in of.rois], bool)
    of = of.part(rows)
    return of, aside[rows], np.array([keys[str(roi)] for roi in of.rois], np.float32)


def _kept(folder: Path) -> dict[str, ArrayF32]:
    found: dict[str, ArrayF32] = {}
    for path in sorted(folder.glob("vectors-*.npz")):
        with np.load(path) as file:
            found |= {name: file[name] for name in file.files}
    return found


def _by_canvas(ids: Collection[uuid.UUID]) -> Iterator[list[Roi]]:
    """ROIs that are still there, canvas by canvas, in the order of their frames."""
    rois = Roi.objects.live().select_related("canvas", "lab").filter(pk__in=ids)
    ordered = rois.order_by("canvas_id", "frame_pts", "pk")
    for _, own in groupby(ordered.iterator(chunk_size=500), key=lambda roi: roi.canvas_id):
        yield list(own)


def _key(roi: Roi) -> str:
    return f"{roi.pk}:{roi.version}"


def _part(network: RegionEncoder, rois: list[Roi], tell: Callable[[], None]) -> dict[str, ArrayF32]:
    """Vectors by ROI and version; empty ones for what cannot be embedded."""
    none = np.empty(0, np.float32)
    try:
        with regions_open(network, rois[0].canvas) as embed:
            found = embed(rois, lambda *_: tell())
    except CancelledError:
        raise
    except (MlError, FileNotFoundError):
        return {_key(roi): none for roi in rois}
    return {
        _key(roi): none if isinstance(one, BadInputError) else one.vector
        for roi, one in zip(rois, found, strict=True)
    }


def _thinned(line: tuple[float, ...]) -> tuple[float, ...]:
    chosen = np.unique(np.linspace(0, len(line) - 1, min(POINTS, len(line))).round().astype(int))
    return tuple(round(line[at], 5) for at in chosen)

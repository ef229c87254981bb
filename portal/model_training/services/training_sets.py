"""Export a lab's regions as a folder for training, requested by a manager.

Names are left out: patients are numbers without meaning elsewhere, files have no metadata, and
every export is recorded in the lab's audit log. Some patients are held out: no written
configuration trains on them, so that models can be evaluated with them, and they stay the same from
one export to the next.
"""

from __future__ import annotations

import csv
import hashlib
import json
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from shapely.affinity import affine_transform
from shapely.geometry import shape

from ml.errors import MlError
from ml.files import replacing
from ml.types import ImageU8, JsonObject, Progress, no_progress
from portal.annotations.marks import MARKS
from portal.annotations.models import ReviewState, Roi
from portal.archive.models import CanvasKind, Modality
from portal.archive.selectors.frames import frame_pixels
from portal.archive.selectors.pixels import canvas_slide_open
from portal.audit.services import entry_note
from portal.core.errors import InvalidInputError
from portal.embeddings.selectors.embeddings import patient_of
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role

LARGEST_PX = 4096
"""Largest side of a written region; larger ones are written coarser than requested, as their row
says."""
MIN_SIDE_PX = 512
"""Smallest side of a written region; smaller ones include their surroundings: the patch encoder
reads 224 px at 1 um."""
HELD_OUT = 0.2
"""Share of held-out patients."""
TRAIN, WATCHED = "train", "held-out"
COLUMNS = ("file", "patient", "use", "label", "mpp", "kind", "geometry")
MANIFEST = ("image", "patient", "label", "mpp", "geometry")
"""Columns of ``rois.csv``, the form of a data set of regions."""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Summary of a written training set.

    Attributes:
        patients, held_out: Numbers of all patients and of those held out from learning.
        labels: Number of distinct labels.
        unreadable: Regions whose pixels cannot be read.
    """

    regions: int
    patients: int
    held_out: int
    labels: int
    unreadable: int


@dataclass(frozen=True, slots=True)
class _Region:
    """A written region; ``geometry`` is WKT in pixels of its file."""

    file: str
    patient: str
    use: str
    label: str
    mpp: str
    kind: str
    geometry: str


def training_set_write(
    *,
    lab: Lab,
    user: User,
    out: Path,
    mpp: float = 0.5,
    kinds: Sequence[str] = (),
    modality: str = "",
    accepted: bool = False,
    held_out: float | Collection[str] = HELD_OUT,
    roi_ids: Collection[uuid.UUID] | None = None,
    largest_px: int = LARGEST_PX,
    progress: Progress = no_progress,
) -> TrainingSet:
    """Write the lab's live areas as PNG files, with tables and a configuration for each scheme.

    ``index.csv`` lists all; ``train/rois.csv`` and ``held-out/rois.csv`` those with a label, as
    data sets; images are in ``histology/`` and ``endoscopy/``.

    Args:
        user: Manager of the lab; regions hidden from them are left out.
        out: Empty or new folder.
        mpp: Microns per pixel of regions of slides with a known scale.
        kinds: Kinds of canvases; () for all.
        modality: Modality of canvases; "" for all.
        accepted: Only regions accepted in review.
        held_out: Share of the patients to hold out, at least one of two or more; or their keys
            (``patient_of``).
        roi_ids: ROIs to write, if visible to ``user``; None for all.
        largest_px: Largest side of a region.
        progress: Called for every region; may raise ``CancelledError``.
    Raises:
        ForbiddenError: The user is not a manager of this lab.
        InvalidInputError: The folder is not empty, or there is no region to write.
    """
    require_role(user, lab.pk, at_least=Role.MANAGER)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInputError(f"{out.name}: choose an empty folder.")
    if isinstance(held_out, float) and not 0 <= held_out < 1:
        raise InvalidInputError(f"held out: expected a share below 1, got {held_out}.")
    rois = Roi.objects.live().owned_by(user).filter(lab=lab).exclude(shape__in=MARKS)
    if kinds:
        rois = rois.filter(canvas__kind__in=kinds)
    if modality:
        rois = rois.filter(canvas__modality=modality)
    if roi_ids is not None:
        rois = rois.filter(pk__in=roi_ids)
    if accepted:
        rois = rois.filter(review_state=ReviewState.ACCEPTED)
    total = rois.count()
    if not total:
        raise InvalidInputError(f"{lab.name} has no such region.")
    entry_note(
        "roi.exported",
        lab_ids=[lab.pk],
        actor_id=user.pk,
        details={"format": "training set", "count": total},
    )
    out.mkdir(parents=True, exist_ok=True)
    watched = _held_out(lab, rois, held_out) if isinstance(held_out, float) else set(held_out)
    regions: list[_Region] = []
    ordered = rois.select_related("canvas__case", "label").order_by("canvas_id", "pk")
    for number, region in enumerate(_write_pictures(ordered, watched, out, (mpp, largest_px)), 1):
        regions += [region] if region else []
        progress(number, total, "regions")
    _tables(regions, out)
    for name, config in _configurations_json(regions, mpp).items():
        with replacing(out / f"{name}.json") as path:
            path.write_text(json.dumps(config, indent=1))
    return TrainingSet(
        regions=len(regions),
        patients=len({region.patient for region in regions}),
        held_out=len({region.patient for region in regions if region.use == WATCHED}),
        labels=len({region.label for region in regions if region.label}),
        unreadable=total - len(regions),
    )


def _held_out(lab: Lab, rois: Any, share: float) -> set[str]:
    """Patients whose hash falls into the share; stable when others are added."""
    pairs = rois.order_by().values_list("canvas__case_id", "canvas__case__patient_key").distinct()
    place = {
        patient: int(hashlib.sha256(f"{lab.pk}:{patient}".encode()).hexdigest()[:8], 16) / 2**32
        for patient in {patient_of(*pair) for pair in pairs}
    }
    ordered = sorted(place, key=lambda patient: place[patient])
    if not share or len(ordered) < 2:
        return set()
    return set(ordered[:1]) | {p for p in ordered[:-1] if place[p] < share}


def _write_pictures(
    rois: Any, watched: set[str], out: Path, size: tuple[float, int]
) -> Iterator[_Region | None]:
    """Yield each region after writing its picture; None if its pixels cannot be read.

    Args:
        size: Requested microns per pixel, and the largest side.
    """
    numbers: dict[str, str] = {}
    for count, roi in enumerate(rois.iterator(chunk_size=500), 1):
        key = patient_of(roi.canvas.case_id, roi.canvas.case.patient_key)
        patient = numbers.setdefault(key, f"p{len(numbers) + 1:05d}")
        folder = roi.canvas.modality
        name = f"{folder}/{patient}-r{count:07d}.png"
        try:
            pixels, corner, downsample = _pixels(roi, *size)
        except (MlError, OSError):
            yield None
            continue
        (out / folder).mkdir(exist_ok=True)  # fails if ``out`` was removed, which ends the export
        Image.fromarray(pixels).save(out / name, compress_level=1)  # six times as fast
        native, scale = roi.canvas.mpp, 1 / downsample
        moved = (scale, 0, 0, scale, -corner[0] * scale, -corner[1] * scale)
        yield _Region(
            file=name,
            patient=patient,
            use=WATCHED if key in watched else TRAIN,
            label=roi.label.name if roi.label else "",
            mpp=f"{native * downsample:.4f}" if native else "",
            kind=roi.canvas.kind,
            geometry=affine_transform(shape(roi.geometry), moved).wkt,
        )


def _pixels(roi: Roi, mpp: float, largest_px: int) -> tuple[ImageU8, tuple[int, int], float]:
    """Pixels of the region's box, its corner, and the reduction."""
    canvas = roi.canvas
    native = canvas.mpp if canvas.kind != CanvasKind.VIDEO else None
    min_downsample = max(1.0, mpp / native) if native else 1.0
    left, right = _widen(roi.left, roi.right, MIN_SIDE_PX * min_downsample, canvas.width_px)
    top, bottom = _widen(roi.top, roi.bottom, MIN_SIDE_PX * min_downsample, canvas.height_px)
    if canvas.kind == CanvasKind.VIDEO:
        frame = frame_pixels(canvas, roi.frame_pts or 0)
        return frame[top:bottom, left:right], (left, top), 1.0
    downsample = max(min_downsample, (right - left) / largest_px, (bottom - top) / largest_px)
    with canvas_slide_open(canvas) as slide:
        pixels = slide.read_scaled((left, top), (right - left, bottom - top), downsample)
    return pixels, (left, top), downsample


def _widen(low: float, high: float, min_length: float, size: int) -> tuple[int, int]:
    """Whole pixels from ``low`` to ``high``, at least ``min_length`` if the canvas has as many."""
    margin = max(0.0, min_length - (high - low)) / 2
    start = min(max(0, int(low - margin)), max(0, size - int(min_length)))
    end = max(int(np.ceil(high)), min(size, start + int(min_length)))
    return start, min(size, max(start + 1, end))


def _tables(regions: Sequence[_Region], out: Path) -> None:
    _table(out / "index.csv", COLUMNS, [[getattr(r, c) for c in COLUMNS] for r in regions])
    for use in (TRAIN, WATCHED):
        rows = [
            [f"../{r.file}", r.patient, r.label, r.mpp, r.geometry]
            for r in regions
            if r.use == use and r.label
        ]
        if rows:
            (out / use).mkdir()
            _table(out / use / "rois.csv", MANIFEST, rows)


def _table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with replacing(path) as written, written.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)


def _configurations_json(regions: Sequence[_Region], mpp: float) -> dict[str, JsonObject]:
    """Configuration of ``--config`` for each scheme with usable regions."""
    tissue = [r for r in regions if r.file.startswith(Modality.HISTOLOGY)]
    scopes = [r for r in regions if r.file.startswith(Modality.ENDOSCOPY)]
    configurations: dict[str, JsonObject] = {}
    slides: dict[str, list[list[Any]]] = {
        use: [[r.file, r.patient, float(r.mpp or mpp)] for r in tissue if r.use == use]
        for use in (TRAIN, WATCHED)
    }
    if slides[TRAIN]:
        configurations["patches"] = {
            "atlas": "",
            "slides": slides[TRAIN],
            "held_out": slides[WATCHED],
        }
        learned, watched = ([slide[0] for slide in slides[use]] for use in (TRAIN, WATCHED))
        configurations["roi"] = {
            "atlas": "",
            "slides": slides[TRAIN],
            "sources": learned,
            "held_out": watched,
        }
    if any(r.use == TRAIN for r in scopes):
        folder, clear = str(Modality.ENDOSCOPY), [0.0, 0.0, 1.0, 1.0]
        held_out = sorted({f"{r.patient}-" for r in scopes if r.use == WATCHED})
        configurations["default"] = {"source": folder, "held_out": held_out, "blank": []}
        configurations["vit"] = {"sources": [folder], "held_out": held_out}
        configurations["endoscopy"] = {"source": folder, "left_out": held_out, "window": clear}
        for name in ("triplet", "cnn", "graph"):
            configurations[name] = {"stills": {"folder": folder, "held_out": held_out}}
    return configurations

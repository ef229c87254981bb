"""A lab's regions as a folder that trainings read, written by order of one of its managers.

No name leaves with them: patients are numbers that mean nothing elsewhere, files carry no metadata,
and every export is noted in the lab's audit log.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ml.errors import MlError
from ml.files import replacing
from ml.imaging.slides import open_slide
from ml.imaging.videos import read_frame
from ml.types import ImageU8
from portal.annotations.models import Roi
from portal.archive import storage
from portal.archive.models import Canvas, CanvasKind
from portal.audit.services import entry_note
from portal.core.errors import InvalidInputError
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role

FOLDER = "regions"
LARGEST_PX = 4096
"""A region is read up to this side; a larger one is coarser than asked for, as its row says."""
COLUMNS = ("file", "patient", "label", "mpp", "kind")


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """What was written: regions, patients they are of, and regions whose pixels cannot be read."""

    regions: int
    patients: int
    unreadable: int


def training_set_write(
    *, lab: Lab, user: User, out: Path, mpp: float = 0.5, kinds: tuple[str, ...] = ()
) -> TrainingSet:
    """Write the lab's live regions as PNG files, their table, and a configuration a scheme.

    Args:
        user: a manager of the lab: theirs is the permission.
        out: an empty folder, or none yet.
        mpp: microns per pixel of what is cut from slides whose scale is known.
        kinds: of canvases; () for all.
    Raises:
        ForbiddenError: the person is no manager of this lab.
        InvalidInputError: the folder holds something, or there is no region to write.
    """
    require_role(user, lab.pk, at_least=Role.MANAGER)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInputError(f"{out.name}: choose an empty folder.")
    rois = Roi.objects.live().filter(lab=lab).select_related("canvas__case", "label")
    if kinds:
        rois = rois.filter(canvas__kind__in=kinds)
    if not rois.exists():
        raise InvalidInputError(f"{lab.name} has no such region.")
    entry_note(
        "roi.exported",
        lab_ids=[lab.pk],
        actor_id=user.pk,
        details={"format": "training set", "count": rois.count()},
    )
    (out / FOLDER).mkdir(parents=True)
    rows = list(_written(rois.order_by("canvas_id", "pk"), out, mpp))
    found = [row for row in rows if row]
    with replacing(out / "index.csv") as path, path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(found)
    for name, config in _configurations(found, mpp).items():
        with replacing(out / f"{name}.json") as path:
            path.write_text(json.dumps(config, indent=1))
    patients = {row["patient"] for row in found}
    return TrainingSet(len(found), len(patients), len(rows) - len(found))


def _written(rois: Any, out: Path, mpp: float) -> Iterator[dict[str, Any]]:
    numbers: dict[Any, str] = {}
    for count, roi in enumerate(rois.iterator(chunk_size=500), 1):
        case = roi.canvas.case
        key = case.patient_key or case.pk
        patient = numbers.setdefault(key, f"p{len(numbers) + 1:05d}")
        name = f"{FOLDER}/{patient}-r{count:07d}.png"
        try:
            pixels, scale = _pixels(roi, mpp)
        except (MlError, OSError):
            yield {}
            continue
        Image.fromarray(pixels).save(out / name)
        yield {
            "file": name,
            "patient": patient,
            "label": roi.label.name if roi.label else "",
            "mpp": "" if scale is None else f"{scale:.4f}",
            "kind": roi.canvas.kind,
        }


def _pixels(roi: Roi, mpp: float) -> tuple[ImageU8, float | None]:
    """The box of the region, and its microns per pixel where they are known."""
    canvas = roi.canvas
    left, top = max(0, int(roi.left)), max(0, int(roi.top))
    right = min(canvas.width_px, max(left + 1, int(np.ceil(roi.right))))
    bottom = min(canvas.height_px, max(top + 1, int(np.ceil(roi.bottom))))
    path = storage.resolve(canvas.pixels_path)
    if canvas.kind == CanvasKind.VIDEO:
        return read_frame(path, roi.frame_pts or 0)[top:bottom, left:right], None
    native = _native_mpp(canvas)
    wanted = max(1.0, mpp / native) if native else 1.0
    downsample = max(wanted, (right - left) / LARGEST_PX, (bottom - top) / LARGEST_PX)
    with open_slide(path) as slide:
        pixels = slide.read_scaled((left, top), (right - left, bottom - top), downsample)
    return pixels, native * downsample if native else None


def _native_mpp(canvas: Canvas) -> float | None:
    if canvas.mpp_x is None or canvas.mpp_y is None:
        return None
    return float((canvas.mpp_x * canvas.mpp_y) ** 0.5)


def _configurations(rows: list[dict[str, Any]], mpp: float) -> dict[str, dict[str, Any]]:
    """What ``--config`` of each scheme is given."""
    slides = [[row["file"], row["patient"], float(row["mpp"] or mpp)] for row in rows]
    return {
        "patches": {"atlas": "", "slides": slides},
        "default": {"source": FOLDER, "held_out": [], "blank": []},
        "endoscopy": {"source": FOLDER, "left_out": [], "window": [0.0, 0.0, 1.0, 1.0]},
        "vit": {"sources": [FOLDER], "held_out": []},
    }

"""``mosaic.json``: a ``MosaicResult`` as plain JSON, and back.

Its objects stay ``JsonObject``: the dataclasses of ``result`` declare the fields.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from ml.errors import CorruptFileError
from ml.mosaic.result import (
    FORMAT_VERSION,
    MANIFEST_NAME,
    ComponentResult,
    FrameResult,
    MosaicGap,
    MosaicLayer,
    MosaicQuality,
    MosaicResult,
    MosaicSpan,
)
from ml.types import ArrayF64, JsonObject

MESH_DIGITS = 3
"""Decimals of a displacement: a thousandth of a px is invisible."""


def to_manifest(result: MosaicResult) -> JsonObject:
    """The manifest as plain JSON values; transforms rounded to 12 significant digits."""
    return {
        "format": FORMAT_VERSION,
        "engine": result.engine,
        "distortion": list(result.distortion),
        "pyramid": result.path.name,
        "preview": result.preview.name,
        "width_px": result.width_px,
        "height_px": result.height_px,
        "motion_model": result.motion_model,
        "anchor_index": result.anchor_index,
        "config_hash": result.config_hash,
        "registered_count": result.registered_count,
        "frame_size_px": list(result.frame_size_px),
        "view_outline": _rows(result.view_outline),
        "quality": dataclasses.asdict(result.quality),
        "components": [dataclasses.asdict(component) for component in result.components],
        "gaps": [dataclasses.asdict(gap) for gap in result.gaps],
        "frames": [_frame_json(frame) for frame in result.frames],
    }


def read_manifest(folder: Path) -> MosaicResult:
    """Read a finished mosaic's folder.

    Raises:
        CorruptFileError: no manifest, one that is damaged, or one of another format.
    """
    path = Path(folder) / MANIFEST_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT_VERSION:
            raise ValueError(f"format {data['format']}, known is {FORMAT_VERSION}")
        return _result(data, path)
    except OSError:
        message = f"{MANIFEST_NAME}: expected a mosaic manifest, found nothing to read"
        raise CorruptFileError(message) from None
    except (ValueError, KeyError, TypeError) as error:
        message = f"{MANIFEST_NAME}: expected a mosaic manifest, got {error}"
        raise CorruptFileError(message) from None


def write_manifest(result: MosaicResult, folder: Path) -> None:
    """Write ``mosaic.json``: the same result gives the same bytes."""
    text = json.dumps(to_manifest(result), indent=1, sort_keys=True, ensure_ascii=False)
    (folder / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")


def _result(data: JsonObject, path: Path) -> MosaicResult:
    width, height = data["frame_size_px"]
    return MosaicResult(
        frames=tuple(_frame(item) for item in data["frames"]),
        path=path.parent / data["pyramid"],
        preview=path.parent / data["preview"],
        manifest=path,
        width_px=int(data["width_px"]),
        height_px=int(data["height_px"]),
        motion_model=str(data["motion_model"]),
        anchor_index=int(data["anchor_index"]),
        config_hash=str(data["config_hash"]),
        components=tuple(_component(item) for item in data["components"]),
        gaps=tuple(_gap(item) for item in data["gaps"]),
        quality=MosaicQuality(**data["quality"]),
        view_outline=np.array(data["view_outline"], np.float64),
        frame_size_px=(int(width), int(height)),
        engine=str(data["engine"]),
        distortion=tuple(float(value) for value in data["distortion"]),
    )


def _component(item: JsonObject) -> ComponentResult:
    fields = dict(item)
    fields["spans"] = tuple(MosaicSpan(**span) for span in item["spans"])
    fields["layers"] = tuple(MosaicLayer(**layer) for layer in item["layers"])
    fields["quality"] = MosaicQuality(**item["quality"])
    return ComponentResult(**fields)


def _gap(item: JsonObject) -> MosaicGap:
    return MosaicGap(**{**item, "span": MosaicSpan(**item["span"])})


def _frame_json(frame: FrameResult) -> JsonObject:
    return {
        "index": frame.index,
        "name": frame.name,
        "pts": frame.pts,
        "time_s": _round(frame.time_s, 6),
        "component": frame.component,
        "is_key": frame.is_key,
        "H_mosaic_from_frame": _rows(frame.H_mosaic_from_frame),
        "covariance": _rows(frame.covariance, digits=5),
        "uncertainty_px": _round(frame.uncertainty_px, 4),
        "sharpness": _round(frame.sharpness, 5),
        "brightness": _round(frame.brightness, 2),
        "status": frame.status,
        "reason": frame.reason,
        "reason_code": frame.reason_code,
        "links": frame.links,
        "error_px": _round(frame.error_px, 4),
        "mesh": None if frame.mesh is None else np.round(frame.mesh, MESH_DIGITS).tolist(),
    }


def _frame(item: JsonObject) -> FrameResult:
    names = ("H_mosaic_from_frame", "covariance", "mesh")
    matrices = {name: _array(item[name]) for name in names}
    return FrameResult(**{**item, **matrices})


def _rows(matrix: ArrayF64 | None, *, digits: int = 12) -> list[list[float]] | None:
    if matrix is None:
        return None
    return [[float(f"{value:.{digits}g}") for value in row] for row in matrix]


def _array(rows: list[Any] | None) -> ArrayF64 | None:
    return None if rows is None else np.array(rows, np.float64)


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)

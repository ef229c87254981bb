"""OME-Zarr written again: the chunks of the image that is shown, byte for byte, and nothing else.

Descriptions are built from what is known of them, so that notes of programs, names, labels, the
overviews of other groups and OME-XML stay behind.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ml.imaging.deidentify.cleaned import Cleaned
from ml.imaging.formats.archives import LONG_AGO
from ml.imaging.formats.ngff import NgffChannel, NgffImage, find_image
from ml.imaging.formats.zarr_arrays import read_array
from ml.imaging.formats.zarr_store import ZarrStore, open_zarr
from ml.imaging.slides.ngff import ngff_levels
from ml.types import JsonObject

_ARRAY_KEYS = (
    *("zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"),
    *("dimension_separator", "node_type", "data_type", "chunk_grid", "chunk_key_encoding"),
    "codecs",
)
_TRANSFORM_KEYS = ("type", "scale", "translation")
_WORDS = (
    *("space", "time", "channel", "second", "millisecond", "nanometer", "micrometer"),
    *("millimeter", "meter"),
)
"""Of axes: their kinds and units."""
_SETTINGS = frozenset(
    {"id", "cname", "clevel", "level", "shuffle", "blocksize", "typesize", "acceleration"}
    | {"checksum", "name", "configuration", "endian", "separator", "chunk_shape", "codecs"}
    | {"index_codecs", "index_location"}
)
"""Of chunks and of what packs them."""
_MOST_TOLD_BYTES = 2**23  # of a description, as far as it is compared
_CHUNK_BYTES = 2**20  # copied at once


def clean_ngff(source: Path, target: Path, cleaned: Cleaned) -> None:
    """Write the archive anew.

    Raises:
        UnsupportedFormatError, CorruptFileError, TooLargeError: as ``find_image``.
    """
    with open_zarr(source) as store, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        image = find_image(store)
        image = _with_levels(image, ngff_levels(store, image), cleaned)
        below = f"{image.path}/" if image.path else ""
        kept: dict[str, str] = {}
        for name, before, told in _descriptions(store, image, below):
            kept[name] = before
            out.writestr(_info(name), told)
            if told != store.read(before, most_bytes=_MOST_TOLD_BYTES):
                cleaned.took("descriptions of the Zarr")
        for name, before in _chunks(store, image, below):
            kept[name] = before
            with (
                store.open(before) as packed,
                out.open(_info(name), "w", force_zip64=True) as plain,
            ):
                shutil.copyfileobj(packed, plain, _CHUNK_BYTES)
        if any(store.root + before != name for name, before in kept.items()):
            cleaned.took("names of files")
        if len(store) > len(kept):
            cleaned.took("files that the slide does not need")


def _with_levels(image: NgffImage, levels: tuple[str, ...], cleaned: Cleaned) -> NgffImage:
    """The image with these of its levels alone."""
    if levels == image.levels:
        return image
    cleaned.took("images that are no levels")
    datasets = [one for one in image.multiscale["datasets"] if str(one["path"]) in levels]
    return replace(image, levels=levels, multiscale={**image.multiscale, "datasets": datasets})


def _info(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=LONG_AGO)


def _descriptions(
    store: ZarrStore, image: NgffImage, below: str
) -> Iterator[tuple[str, str, bytes]]:
    """Of the group and its arrays: the name from now on, the one before, and what it says now."""
    told = _told(image)
    if store.size(f"{below}.zattrs") is None:
        group: JsonObject = {"zarr_format": 3, "node_type": "group"}
        group["attributes"] = {"ome": {"version": image.version, **told}}
        yield "zarr.json", f"{below}zarr.json", _json(group)
    else:
        yield ".zgroup", f"{below}.zgroup", _json({"zarr_format": 2})
        yield ".zattrs", f"{below}.zattrs", _json(told)
    for number, level in enumerate(image.levels):
        file = "zarr.json" if store.size(f"{below}{level}/.zarray") is None else ".zarray"
        described = store.json(f"{below}{level}/{file}") or {}
        plain = {key: _known(described[key]) for key in _ARRAY_KEYS if key in described}
        if file == "zarr.json":
            plain["dimension_names"] = list(image.axes)
        yield f"{number}/{file}", f"{below}{level}/{file}", _json(plain)


def _chunks(store: ZarrStore, image: NgffImage, below: str) -> Iterator[tuple[str, str]]:
    """Names of chunks from now on and before; of every level, which has to be readable."""
    for number, level in enumerate(image.levels):
        path = f"{below}{level}"
        array = read_array(store, path)
        for name in store.names(path):
            short = name[len(path) + 1 :]
            if array.is_chunk(short):
                yield f"{number}/{short}", name


def _told(image: NgffImage) -> JsonObject:
    """What the image needs to be read and shown as before: numbers, colours, axes."""
    before = image.multiscale
    one: JsonObject = {
        "datasets": [
            {"path": str(number), **_transforms(dataset)}
            for number, dataset in enumerate(before["datasets"])
        ],
        **_transforms(before),
    }
    if before.get("axes") is not None:
        one["axes"] = [
            {"name": name} | {key: axis[key] for key in ("type", "unit") if axis.get(key) in _WORDS}
            if isinstance(axis, dict)
            else name
            for name, axis in zip(image.axes, before["axes"], strict=True)
        ]
    if "version" in before:
        one["version"] = image.version
    plane = {f"default{axis.upper()}": at for axis, at in image.plane.items()}
    return {"multiscales": [one], "omero": {"rdefs": plane, "channels": _channels(image)}}


def _channels(image: NgffImage) -> list[JsonObject]:
    """Colours of the channels, and the windows that the file states."""
    shown = {channel.index: channel for channel in image.channels}
    count = image.array.shape[image.axes.index("c")] if "c" in image.axes else 1
    full = 2 ** (8 * image.array.dtype.itemsize) - 1
    found = []
    for number in range(count):
        channel = shown.get(number, NgffChannel(number, (255, 255, 255), 0.0, full))
        color = bytes(channel.color).hex().upper()
        one: JsonObject = {"active": number in shown, "color": color}
        if channel.is_stated:
            one["window"] = {"min": 0, "max": full, "start": channel.low, "end": channel.high}
        found.append(one)
    return found


def _transforms(holder: JsonObject) -> JsonObject:
    steps = holder.get("coordinateTransformations")
    if not steps:
        return {}
    plain = [
        {
            key: step[key] if key == "type" else [float(one) for one in step[key]]
            for key in _TRANSFORM_KEYS
            if key in step
        }
        for step in steps
        if step.get("type") in ("scale", "translation", "identity")
    ]
    return {"coordinateTransformations": plain}


def _known(told: Any) -> Any:
    """Settings that are known, of whatever is nested in them."""
    if isinstance(told, dict):
        return {key: _known(value) for key, value in told.items() if key in _SETTINGS}
    return [_known(one) for one in told] if isinstance(told, list) else told


def _json(told: JsonObject) -> bytes:
    return json.dumps(told, indent=1).encode()

"""OME-Zarr, rewritten with only the chunks of the displayed image.

Metadata are rebuilt from known keys, which leaves out notes of programs, names, labels, the
overviews of other groups and OME-XML.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.formats.archives import FIXED_DATE
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
"""Allowed kinds and units of axes."""
_SETTINGS = frozenset(
    {"id", "cname", "clevel", "level", "shuffle", "blocksize", "typesize", "acceleration"}
    | {"checksum", "name", "configuration", "endian", "separator", "chunk_shape", "codecs"}
    | {"index_codecs", "index_location"}
)
"""Allowed settings of chunks and of their codecs."""
_MAX_METADATA_BYTES = 2**23  # of a description; the rest is not compared
_CHUNK_BYTES = 2**20  # copied at once


def clean_ngff(source: Path, target: Path, cleaned: DeidentificationResult) -> None:
    """Write a cleaned copy of the archive.

    Raises:
        UnsupportedFormatError, CorruptFileError, TooLargeError: See ``find_image``.
    """
    with open_zarr(source) as store, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        image = find_image(store)
        image = _with_levels(image, ngff_levels(store, image), cleaned)
        below = f"{image.path}/" if image.path else ""
        copied: dict[str, str] = {}
        for name, before, content in _descriptions(store, image, below):
            copied[name] = before
            out.writestr(_info(name), content)
            if content != store.read(before, max_bytes=_MAX_METADATA_BYTES):
                cleaned.add_removed("descriptions of the Zarr")
        for name, before in _chunks(store, image, below):
            copied[name] = before
            with (
                store.open(before) as packed,
                out.open(_info(name), "w", force_zip64=True) as plain,
            ):
                shutil.copyfileobj(packed, plain, _CHUNK_BYTES)
        if any(store.root + before != name for name, before in copied.items()):
            cleaned.add_removed("names of files")
        if len(store) > len(copied):
            cleaned.add_removed("files that the slide does not need")


def _with_levels(
    image: NgffImage, levels: tuple[str, ...], cleaned: DeidentificationResult
) -> NgffImage:
    """Restrict an image to these levels."""
    if levels == image.levels:
        return image
    cleaned.add_removed("images that are no levels")
    datasets = [
        dataset for dataset in image.multiscale["datasets"] if str(dataset["path"]) in levels
    ]
    return replace(image, levels=levels, multiscale={**image.multiscale, "datasets": datasets})


def _info(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=FIXED_DATE)


def _descriptions(
    store: ZarrStore, image: NgffImage, below: str
) -> Iterator[tuple[str, str, bytes]]:
    """Metadata files of the group and its arrays: new name, old name and new content."""
    metadata = _display_metadata(image)
    if store.size(f"{below}.zattrs") is None:
        group: JsonObject = {"zarr_format": 3, "node_type": "group"}
        group["attributes"] = {"ome": {"version": image.version, **metadata}}
        yield "zarr.json", f"{below}zarr.json", _json(group)
    else:
        yield ".zgroup", f"{below}.zgroup", _json({"zarr_format": 2})
        yield ".zattrs", f"{below}.zattrs", _json(metadata)
    for number, level in enumerate(image.levels):
        file = "zarr.json" if store.size(f"{below}{level}/.zarray") is None else ".zarray"
        stored = store.json(f"{below}{level}/{file}") or {}
        plain = {key: _allowed_settings(stored[key]) for key in _ARRAY_KEYS if key in stored}
        if file == "zarr.json":
            plain["dimension_names"] = list(image.axes)
        yield f"{number}/{file}", f"{below}{level}/{file}", _json(plain)


def _chunks(store: ZarrStore, image: NgffImage, below: str) -> Iterator[tuple[str, str]]:
    """New and old names of the chunks of every level, each of which must be readable."""
    for number, level in enumerate(image.levels):
        path = f"{below}{level}"
        array = read_array(store, path)
        for name in store.names(path):
            short = name[len(path) + 1 :]
            if array.is_chunk(short):
                yield f"{number}/{short}", name


def _display_metadata(image: NgffImage) -> JsonObject:
    """Metadata that reading and display need: numbers, colours, axes."""
    before = image.multiscale
    multiscale: JsonObject = {
        "datasets": [
            {"path": str(number), **_transforms(dataset)}
            for number, dataset in enumerate(before["datasets"])
        ],
        **_transforms(before),
    }
    if before.get("axes") is not None:
        multiscale["axes"] = [
            {"name": name} | {key: axis[key] for key in ("type", "unit") if axis.get(key) in _WORDS}
            if isinstance(axis, dict)
            else name
            for name, axis in zip(image.axes, before["axes"], strict=True)
        ]
    if "version" in before:
        multiscale["version"] = image.version
    plane = {f"default{axis.upper()}": at for axis, at in image.plane.items()}
    return {"multiscales": [multiscale], "omero": {"rdefs": plane, "channels": _channels(image)}}


def _channels(image: NgffImage) -> list[JsonObject]:
    """Colours of the channels, and the windows that the file states."""
    by_index = {channel.index: channel for channel in image.channels}
    count = image.array.shape[image.axes.index("c")] if "c" in image.axes else 1
    full = 2 ** (8 * image.array.dtype.itemsize) - 1
    channels = []
    for number in range(count):
        channel = by_index.get(number, NgffChannel(number, (255, 255, 255), 0.0, full))
        color = bytes(channel.color).hex().upper()
        entry: JsonObject = {"active": number in by_index, "color": color}
        if channel.is_stated:
            entry["window"] = {"min": 0, "max": full, "start": channel.low, "end": channel.high}
        channels.append(entry)
    return channels


def _transforms(holder: JsonObject) -> JsonObject:
    steps = holder.get("coordinateTransformations")
    if not steps:
        return {}
    plain = [
        {
            key: step[key] if key == "type" else [float(value) for value in step[key]]
            for key in _TRANSFORM_KEYS
            if key in step
        }
        for step in steps
        if step.get("type") in ("scale", "translation", "identity")
    ]
    return {"coordinateTransformations": plain}


def _allowed_settings(setting: Any) -> Any:
    """Allowed settings of a value, recursively."""
    if isinstance(setting, dict):
        return {key: _allowed_settings(value) for key, value in setting.items() if key in _SETTINGS}
    return [_allowed_settings(entry) for entry in setting] if isinstance(setting, list) else setting


def _json(content: JsonObject) -> bytes:
    return json.dumps(content, indent=1).encode()

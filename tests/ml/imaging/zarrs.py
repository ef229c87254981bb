"""OME-Zarr images written by zarr-python, in both versions, with names where programs put them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numcodecs import LZ4, Blosc, GZip, Zstd
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from tests.ml.imaging.multi_file import picture

SECRET = "DoeJane"
_PACKERS_2 = {
    "blosc": Blosc(cname="lz4"), "zstd": Zstd(), "gzip": GZip(), "lz4": LZ4(), "none": None,
}  # fmt: skip
_PACKERS_3 = {
    "blosc": BloscCodec(), "zstd": ZstdCodec(checksum=True), "gzip": GzipCodec(), "none": None,
}  # fmt: skip


def write_ngff(
    folder: Path,
    pixels: Any = None,
    *,
    version: int = 2,
    packer: str = "blosc",
    chunk: tuple[int, ...] = (1, 100, 128),
    shard: tuple[int, ...] | None = None,
    omero: dict[str, Any] | None = None,
    unit: str | None = "micrometer",
    within: str = "",
    axes: str = "cyx",
) -> Path:
    """Two levels of a picture, (c, y, x) as OME-NGFF orders them.

    Args:
        pixels: (..., H, W). within: the group of the image, as bioformats2raw writes several.
    """
    data = np.moveaxis(picture(300, 200), 2, 0) if pixels is None else pixels
    store = zarr.storage.LocalStore(folder)
    root = zarr.create_group(store, zarr_format=version, overwrite=True)
    group = root.create_group(within) if within else root
    if within:
        root.attrs.update(
            {"ome": {"bioformats2raw.layout": 3}} if version == 3 else {"bioformats2raw.layout": 3}
        )
    for number in range(2):
        level = data[..., :: 2**number, :: 2**number]
        more: dict[str, Any] = {"shards": shard} if shard else {}
        if version == 2:
            more["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
        packed = (_PACKERS_3 if version == 3 else _PACKERS_2)[packer]
        array = group.create_array(
            str(number), shape=level.shape, dtype=level.dtype, chunks=chunk,
            compressors=packed, **more,
        )  # fmt: skip
        array[:] = level
        array.attrs["scanner"] = SECRET
    spaces = {"type": "space"} | ({"unit": unit} if unit else {})
    kinds = {"c": {"type": "channel"}, "t": {"type": "time"}}
    attributes: dict[str, Any] = {
        "multiscales": [
            {
                "name": SECRET,
                "axes": [{"name": axis, **kinds.get(axis, spaces)} for axis in axes],
                "datasets": [
                    {
                        "path": str(number),
                        "coordinateTransformations": [
                            {
                                "type": "scale",
                                "scale": [
                                    0.25 * 2**number if axis in "xy" else 1.0 for axis in axes
                                ],
                            }
                        ],
                    }
                    for number in range(2)
                ],
                "metadata": {"operator": SECRET},
            }
        ],
        "creator": SECRET,
    }
    if omero is not None:
        attributes["omero"] = omero
    group.attrs.update({"ome": attributes | {"version": "0.5"}} if version == 3 else attributes)
    return folder


def ozx(folder: Path, path: Path, *, compress: bool = False) -> Path:
    """The hierarchy as one archive whose root is its own, as RFC 9 of OME-NGFF has it."""
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder).as_posix())
    return path

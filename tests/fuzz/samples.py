"""One small honest file of every format the portal takes, to be damaged."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import tifffile
from PIL import Image

from ml.imaging.slides.pyramids import write_pyramid
from tests.ml.imaging.deidentification.support import AVC, MPEG2, write_dicom_video
from tests.ml.imaging.multi_file import picture, write_mrxs, write_vms, zipped
from tests.ml.imaging.zarrs import ozx, write_ngff

_VIDEOS = {
    "mp4": ("libx264", "mp4"), "mov": ("libx264", "mov"), "mkv": ("libx264", "matroska"),
    "webm": ("libvpx-vp9", "webm"), "avi": ("mpeg4", "avi"), "mjpeg-avi": ("mjpeg", "avi"),
    "wmv": ("wmv2", "asf"), "mpg": ("mpeg2video", "vob"), "ts": ("libx264", "mpegts"),
    "flv": ("flv", "flv"),
}  # fmt: skip
_APERIO = "Aperio Image Library v11.2.1\n512x512 (256x256)|AppMag = 20|MPP = 0.499"
_REAL = {"svs-real": "cmu-1-small-region.svs", "ndpi-real": "fluorescence-dapi.ndpi"}


def samples(folder: Path) -> dict[str, bytes]:
    """Name of the format -> bytes of an honest file; those of the development data where it is."""
    made: dict[str, bytes] = {}
    for part in (_slides, _stills, _videos, _several):
        made |= part(folder)
    data = os.environ.get("TESSERA_DATA")
    for name, file in _REAL.items() if data else ():
        made[name] = (Path(data or "") / "histology/slides" / file).read_bytes()
    return made


def _slides(folder: Path) -> dict[str, bytes]:
    image = picture(512, 512)
    path = folder / "slide"

    def tiff(**options: object) -> bytes:
        tifffile.imwrite(path, image, photometric="rgb", **options)
        return path.read_bytes()

    tile = {"tile": (256, 256)}
    made = {
        "svs": tiff(**tile, compression="jpeg", description=_APERIO, metadata=None),
        "svs-jp2k": tiff(
            **tile, compression="aperio_jp2000_rgb", description=_APERIO, metadata=None
        ),
        "bigtiff": tiff(**tile, bigtiff=True, compression="deflate"),
        "big-endian": tiff(**tile, byteorder=">", compression="lzw"),
        "ome-tiff": tiff(**tile, ome=True, compression="jpeg"),
        "ndpi-like": tiff(compression="jpeg", rowsperstrip=512, extratags=[(65420, 4, 1, 1, True)]),
        "tiff-strips": tiff(rowsperstrip=16),
    }
    made["pyramid"] = write_pyramid(image, folder / "pyramid.tif", tile_px=128).read_bytes()
    uid = b"1.2.840.10008.5.1.4.1.1.77.1.6"
    made["dicom"] = bytes(128) + b"DICM\2\0\2\0UI\x1e\0" + uid + image.tobytes()[:4_000]
    return made


def _stills(folder: Path) -> dict[str, bytes]:
    image = Image.fromarray(picture(200, 150))

    def saved(kind: str, **options: object) -> bytes:
        out = io.BytesIO()
        image.save(out, kind, **options)
        return out.getvalue()

    exif = Image.Exif()
    exif[0x0112] = 6
    return {
        "jpeg": saved("JPEG"), "jpeg-turned": saved("JPEG", exif=exif, progressive=True),
        "png": saved("PNG"), "webp": saved("WEBP"), "bmp": saved("BMP"), "tiff": saved("TIFF"),
        "jpeg2000": saved("JPEG2000", tile_size=(64, 64)),
        "jpeg2000-bare": saved("JPEG2000", no_jp2=True),
    }  # fmt: skip


def _videos(folder: Path) -> dict[str, bytes]:
    made = {}
    for name, (codec, container) in _VIDEOS.items():
        path = folder / "video"
        with av.open(str(path), "w", format=container) as target:
            stream = target.add_stream(codec, rate=25)
            stream.width, stream.height = 96, 64
            stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
            stream.codec_context.thread_count = 1
            for n in range(30):
                moved = np.ascontiguousarray(picture(160, 64)[:, 2 * n : 2 * n + 96])
                target.mux(stream.encode(av.VideoFrame.from_ndarray(moved, format="rgb24")))
            target.mux(stream.encode(None))
        made[name] = path.read_bytes()
    for name, syntax in (("mp4", AVC), ("mpg", MPEG2)):
        path.write_bytes(made[name])
        wrapped = write_dicom_video(folder / "wrapped.dcm", path, syntax)
        made[f"dicom-video-{name}"] = wrapped.read_bytes()
    return made


def _several(folder: Path) -> dict[str, bytes]:
    made = {}
    writers: dict[str, Callable[[Path], Path]] = {"vms": write_vms, "mrxs": write_mrxs}
    for name, write in writers.items():
        main = write(folder / name)
        made[f"zip-{name}"] = zipped(folder / name, folder / f"{name}.zip").read_bytes()
        made[f"{name}-alone"] = main.read_bytes()
    for version in (2, 3):
        folder_of = write_ngff(folder / f"zarr-{version}", version=version, packer="zstd")
        made[f"zip-zarr-{version}"] = ozx(folder_of, folder / f"zarr-{version}.zip").read_bytes()
    return made

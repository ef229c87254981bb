"""Small slides of several files, made by hand: VMS and MRXS as OpenSlide reads them."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from ml.types import ImageU8

_SLIDE_ID = "0" * 32


def picture(width: int = 512, height: int = 256) -> ImageU8:
    """(height, width, 3): red grows rightwards, green downwards."""
    y, x = np.mgrid[:height, :width]
    return np.stack([x // 2, y, (x ^ y) & 255], axis=-1).astype(np.uint8)


def _jpeg(image: ImageU8, **options: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=90, subsampling=0, **options)
    return out.getvalue()


def write_vms(folder: Path, *, image: str = "image.jpg") -> Path:
    """A Hamamatsu VMS of 512 x 256 px whose index names ``image`` as its pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "image.jpg").write_bytes(_jpeg(picture(), restart_marker_blocks=8))
    (folder / "map.jpg").write_bytes(_jpeg(picture()[::4, ::4].copy(), restart_marker_blocks=8))
    index = folder / "slide.vms"
    index.write_text(
        "[Virtual Microscope Specimen]\nNoLayers=1\nNoJpegColumns=1\nNoJpegRows=1\n"
        f"ImageFile={image}\nMapFile=map.jpg\nSourceLens=20\n"
        "PhysicalWidth=256000\nPhysicalHeight=128000\n"
    )
    return index


def write_mrxs(folder: Path, *, data: str = "Data0000.dat") -> Path:
    """A 3DHISTECH MRXS of 2 x 1 tiles of 256 px whose index names ``data`` as its pixels."""
    inner = folder / "slide"
    inner.mkdir(parents=True, exist_ok=True)
    tiles = [_jpeg(picture()[:, at : at + 256].copy()) for at in (0, 256)]
    (inner / "Data0000.dat").write_bytes(b"".join(tiles))
    (inner / "Index.dat").write_bytes(_mrxs_index([len(tile) for tile in tiles]))
    (inner / "Slidedat.ini").write_text(
        f"[GENERAL]\nSLIDE_ID={_SLIDE_ID}\nIMAGENUMBER_X=2\nIMAGENUMBER_Y=1\n"
        "OBJECTIVE_MAGNIFICATION=20\nCURRENT_SLIDE_VERSION=2.3\n"
        "[HIERARCHICAL]\nHIER_COUNT=1\nNONHIER_COUNT=0\nINDEXFILE=Index.dat\n"
        "HIER_0_NAME=Slide zoom level\nHIER_0_COUNT=1\nHIER_0_VAL_0=ZoomLevel_0\n"
        "HIER_0_VAL_0_SECTION=LEVEL_0\n"
        "[LEVEL_0]\nOVERLAP_X=0\nOVERLAP_Y=0\nMICROMETER_PER_PIXEL_X=0.5\n"
        "MICROMETER_PER_PIXEL_Y=0.5\nIMAGE_FORMAT=JPEG\nIMAGE_FILL_COLOR_BGR=16777215\n"
        "DIGITIZER_WIDTH=256\nDIGITIZER_HEIGHT=256\nIMAGE_CONCAT_FACTOR=0\n"
        f"[DATAFILE]\nFILE_COUNT=1\nFILE_0={data}\n"
    )
    index = folder / "slide.mrxs"
    index.write_bytes(_jpeg(picture()[::4, ::4].copy()))
    return index


def _mrxs_index(lengths: list[int]) -> bytes:
    """Version, slide id, roots, one level, one page of (number, offset, length, file)."""
    start = 5 + len(_SLIDE_ID)
    levels, head, page = start + 8, start + 12, start + 20
    body = b"01.02" + _SLIDE_ID.encode() + struct.pack("<ii", levels, 0)
    body += struct.pack("<i", head) + struct.pack("<ii", 0, page)
    body += struct.pack("<ii", len(lengths), 0)
    offset = 0
    for number, length in enumerate(lengths):
        body += struct.pack("<iiii", number, offset, length, 0)
        offset += length
    return body


def zipped(folder: Path, out: Path) -> Path:
    """The folder's files as one archive, as a person would pack them."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder).as_posix())
    return out

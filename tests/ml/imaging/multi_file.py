"""Small slides of several files, made by hand: VMS and MRXS as OpenSlide reads them."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ml.imaging.sandbox.parent import run_limited
from ml.types import ImageU8

SLIDE_ID = "5B2DE5C1A0F34D6C9A7E11D0C4B8F2E3"
SECRET = "DoeJane"


def picture(width: int = 512, height: int = 256) -> ImageU8:
    """(height, width, 3): red grows rightwards, green downwards."""
    y, x = np.mgrid[:height, :width]
    return np.stack([x // 2, y, (x ^ y) & 255], axis=-1).astype(np.uint8)


def _jpeg(image: ImageU8, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=90, subsampling=0, **options)
    return out.getvalue()


def write_vms(
    folder: Path,
    *,
    image: str = "image.jpg",
    named: bool = False,
    pixels: ImageU8 | None = None,
) -> Path:
    """A Hamamatsu VMS of 512 x 256 px whose index names ``image`` as its pixels.

    Args:
        pixels: What it shows; ``picture()`` if left out.
        named: with a patient's name in the index, its files' names, a comment and a macro image.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shown = picture() if pixels is None else pixels
    jpeg_options = {"restart_marker_blocks": 8, **({"comment": SECRET.encode()} if named else {})}
    if named:
        image = f"{SECRET} 40x.jpg"
        macro = _jpeg(picture()[::2, ::2].copy(), comment=SECRET.encode())
        (folder / f"{SECRET}_macro.jpg").write_bytes(macro)
    stored = folder / (image if named else "image.jpg")
    stored.write_bytes(_jpeg(shown, **jpeg_options))
    (folder / "map.jpg").write_bytes(_jpeg(shown[::4, ::4].copy(), **jpeg_options))
    index = folder / "slide.vms"
    index.write_text(
        "[Virtual Microscope Specimen]\nNoLayers=1\nNoJpegColumns=1\nNoJpegRows=1\n"
        f"ImageFile={image}\nMapFile=map.jpg\nSourceLens=20\n"
        "PhysicalWidth=256000\nPhysicalHeight=128000\n"
        + (f"Reference={SECRET}\nMacroImage={SECRET}_macro.jpg\n" if named else "")
    )
    return index


def write_mrxs(
    folder: Path,
    *,
    data: str = "Data0000.dat",
    named: bool = False,
    pixels: ImageU8 | None = None,
) -> Path:
    """A 3DHISTECH MRXS of 2 x 1 tiles of 256 px whose index names ``data`` as its pixels.

    Args:
        pixels: What it shows, 512 x 256 px; ``picture()`` if left out.
        named: with label, overview, preview and a patient's name, and positions of its tiles.
    """
    inner = folder / "slide"
    inner.mkdir(parents=True, exist_ok=True)
    shown = picture() if pixels is None else pixels
    tiles = [_jpeg(shown[:, at : at + 256].copy()) for at in (0, 256)]
    beside = _BESIDE if named else {}
    layers = [_jpeg(picture()[::4, ::4].copy(), comment=SECRET.encode()) for _ in beside]
    if named:
        layers.append(b"".join(struct.pack("<bii", 1, x, 0) for x in (0, 256)))
    head = b"01.02" + SLIDE_ID.encode() + b"000"
    (inner / "Data0000.dat").write_bytes(head + b"".join(tiles + layers))
    lengths = [[len(part) for part in parts] for parts in (tiles, layers)]
    (inner / "Index.dat").write_bytes(_mrxs_index(len(head), *lengths))
    fields = f"SLIDE_NAME={SECRET}\nSLIDE_CREATIONDATETIME=29/12/2009 09:59:15\n" if named else ""
    (inner / "Slidedat.ini").write_text(
        f"[GENERAL]\nSLIDE_ID={SLIDE_ID}\nIMAGENUMBER_X=2\nIMAGENUMBER_Y=1\n{fields}"
        "OBJECTIVE_MAGNIFICATION=20\nCURRENT_SLIDE_VERSION=2.3\n"
        f"[HIERARCHICAL]\nHIER_COUNT=1\nNONHIER_COUNT={2 * named:d}\nINDEXFILE=Index.dat\n"
        "HIER_0_NAME=Slide zoom level\nHIER_0_COUNT=1\nHIER_0_VAL_0=ZoomLevel_0\n"
        "HIER_0_VAL_0_SECTION=LEVEL_0\n"
        + (_mrxs_layers() if named else "")
        + "[LEVEL_0]\nOVERLAP_X=0\nOVERLAP_Y=0\nMICROMETER_PER_PIXEL_X=0.5\n"
        "MICROMETER_PER_PIXEL_Y=0.5\nIMAGE_FORMAT=JPEG\nIMAGE_FILL_COLOR_BGR=16777215\n"
        "DIGITIZER_WIDTH=256\nDIGITIZER_HEIGHT=256\nIMAGE_CONCAT_FACTOR=0\n"
        f"[DATAFILE]\nFILE_COUNT=1\nFILE_0={data}\n"
    )
    index = folder / "slide.mrxs"
    index.write_bytes(_jpeg(picture()[::4, ::4].copy()))
    return index


_BESIDE = {
    "ScanDataLayer_SlideThumbnail": "THUMBNAIL_IMAGE_TYPE",
    "ScanDataLayer_SlideBarcode": "BARCODE_IMAGE_TYPE",
    "ScanDataLayer_SlidePreview": "PREVIEW_IMAGE_TYPE",
}


def _mrxs_layers() -> str:
    """Layers other than pixels: three pictures, and positions of tiles."""
    lines = ["NONHIER_0_NAME=Scan data layer", f"NONHIER_0_COUNT={len(_BESIDE)}"]
    for number, value in enumerate(_BESIDE):
        lines.append(f"NONHIER_0_VAL_{number}={value}")
        lines.append(f"NONHIER_0_VAL_{number}_SECTION=BESIDE_{number}")
    lines += ["NONHIER_1_NAME=VIMSLIDE_POSITION_BUFFER", "NONHIER_1_COUNT=1"]
    lines += ["NONHIER_1_VAL_0=default", "NONHIER_1_VAL_0_SECTION=NONHIERLAYER_1_LEVEL_0_SECTION"]
    for number, kind in enumerate(_BESIDE.values()):
        lines += [f"[BESIDE_{number}]", f"{kind}=JPEG", f"BARCODE_VALUE={SECRET}"]
    lines += ["[NONHIERLAYER_1_SECTION]", "VIMSLIDE_POSITION_DATA_FORMAT_VERSION=257"]
    return "\n".join(lines) + "\n"


def _mrxs_index(offset: int, tiles: list[int], layers: list[int]) -> bytes:
    """Version, slide id, two roots; a page of tiles, and one for each other layer."""
    start = 5 + len(SLIDE_ID.encode())
    levels = start + 8
    beside = levels + 4 + 16 + 16 * len(tiles)
    body = b"01.02" + SLIDE_ID.encode() + struct.pack("<ii", levels, beside if layers else 0)
    body += struct.pack("<i", levels + 4) + struct.pack("<ii", 0, levels + 12)
    body += struct.pack("<ii", len(tiles), 0)
    for number, length in enumerate(tiles):
        body += struct.pack("<iiii", number, offset, length, 0)
        offset += length
    first = beside + 4 * len(layers)
    body += b"".join(struct.pack("<i", first + 36 * number) for number in range(len(layers)))
    for number, length in enumerate(layers):
        body += struct.pack("<ii", 0, first + 36 * number + 8)
        body += struct.pack("<iiiiiii", 1, 0, 0, 0, offset, length, 0)
        offset += length
    return body


def zipped(folder: Path, out: Path) -> Path:
    """The folder's files as one archive, as a person would pack them."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder).as_posix())
    return out


def inspected_apart(path: Path, out: Path) -> dict[str, Any]:
    """``inspect_slide`` in the limited child, as an upload is opened; it writes into ``out``."""
    out.mkdir(exist_ok=True)
    return run_limited(
        "ml.imaging.ingest:inspect_slide",
        {"path": str(path), "out_dir": str(out)},
        reads=(path,),
        writes=(out,),
    )

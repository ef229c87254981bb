"""DICOM and CZI slides made by hand, as OpenSlide reads them, with names and labels."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import JPEGBaseline8Bit, generate_uid

from ml.types import ImageU8

SECRET = "DoeJane"
_SLIDE_CLASS = "1.2.840.10008.5.1.4.1.1.77.1.6"
_TILE_PX = 256
_BGR24 = 3


def write_dicom_series(folder: Path, pixels: ImageU8, *, label: ImageU8 | None = None) -> Path:
    """A series of two levels and, if given, a label; the levels are ``0.dcm`` and ``1.dcm``."""
    folder.mkdir(parents=True, exist_ok=True)
    series = generate_uid()
    images = [("VOLUME", pixels), ("VOLUME", np.ascontiguousarray(pixels[::2, ::2]))]
    if label is not None:
        images.append(("LABEL", label))
    width_mm = pixels.shape[1] * 0.5 / 1_000
    for number, (kind, image) in enumerate(images):
        data = _dicom(image, kind, series, width_mm)
        data.save_as(folder / f"{number}.dcm", enforce_file_format=True)
    return folder


def _dicom(image: ImageU8, kind: str, series: str, width_mm: float) -> Dataset:
    """An object of an image in tiles, as TILED_FULL."""
    height, width = image.shape[:2]
    study = f"{series[:50]}.1"
    meta, data = FileMetaDataset(), Dataset()
    meta.MediaStorageSOPClassUID = data.SOPClassUID = _SLIDE_CLASS
    meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = JPEGBaseline8Bit
    data.file_meta = meta
    data.StudyInstanceUID, data.SeriesInstanceUID = study, series
    data.FrameOfReferenceUID = study
    data.PatientName, data.PatientID, data.Modality = f"{SECRET}^A", SECRET, "SM"
    data.Manufacturer, data.ManufacturerModelName = "Maker", "Scanner 7"
    data.ImageType = ["ORIGINAL", "PRIMARY", kind, "NONE"]
    data.DimensionOrganizationType = "TILED_FULL"
    data.TotalPixelMatrixColumns, data.TotalPixelMatrixRows = width, height
    across, down = (width, height) if kind == "LABEL" else (_TILE_PX, _TILE_PX)
    data.Rows, data.Columns = down, across
    data.SamplesPerPixel, data.PhotometricInterpretation = 3, "YBR_FULL_422"
    data.PlanarConfiguration, data.PixelRepresentation = 0, 0
    data.BitsAllocated, data.BitsStored, data.HighBit = 8, 8, 7
    data.ImagedVolumeWidth, data.ImagedVolumeHeight = width_mm, width_mm * height / width
    data.TotalPixelMatrixFocalPlanes = data.NumberOfOpticalPaths = 1
    spacing, shared, path = Dataset(), Dataset(), Dataset()
    spacing.PixelSpacing = [width_mm / width, width_mm / width]
    shared.PixelMeasuresSequence = [spacing]
    data.SharedFunctionalGroupsSequence = [shared]
    path.OpticalPathIdentifier = "1"
    path.ObjectiveLensPower = 20
    data.OpticalPathSequence = [path]
    frames = [
        _jpeg(_tile(image, x, y, across, down))
        for y in range(0, height, down)
        for x in range(0, width, across)
    ]
    data.NumberOfFrames = len(frames)
    data.PixelData = encapsulate(frames)
    return data


def _tile(image: ImageU8, x: int, y: int, width: int, height: int) -> ImageU8:
    """A whole tile, white outside the image."""
    tile: ImageU8 = np.full((height, width, 3), 255, np.uint8)
    part = image[y : y + height, x : x + width]
    tile[: part.shape[0], : part.shape[1]] = part
    return tile


def _jpeg(image: ImageU8) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=92)
    return out.getvalue()


def write_czi(path: Path, pixels: ImageU8, *, label: ImageU8 | None = None) -> Path:
    """A CZI of one uncompressed tile, with its label as an attachment (Zeiss' CZI, version 1)."""
    path.write_bytes(_czi(pixels, {} if label is None else {"Label": _czi(label, {})}))
    return path


def _czi(pixels: ImageU8, attached: dict[str, bytes]) -> bytes:
    height, width = pixels.shape[:2]
    out = bytearray(_segment(b"ZISRAWFILE", bytes(512)))  # its positions are written at the end
    tile_at = len(out)
    entry = _czi_entry(tile_at, width, height)
    data = np.ascontiguousarray(pixels[..., ::-1]).tobytes()
    head = struct.pack("<iiq", 0, 0, len(data)) + entry
    out += _segment(b"ZISRAWSUBBLOCK", head.ljust(256, b"\0") + data)
    metadata_at = len(out)
    scaling = "".join(
        f'<Distance Id="{axis}"><Value>5e-7</Value></Distance>' for axis in ("X", "Y")
    )
    xml = (
        "<ImageDocument><Metadata><Information>"
        f"<User><DisplayName>{SECRET}</DisplayName></User>"
        f"<Image><SizeX>{width}</SizeX><SizeY>{height}</SizeY>"
        "<PixelType>Bgr24</PixelType></Image></Information>"
        f"<Scaling><Items>{scaling}</Items></Scaling></Metadata></ImageDocument>"
    ).encode()
    body = struct.pack("<ii", len(xml), 0).ljust(256, b"\0") + xml
    out += _segment(b"ZISRAWMETADATA", body)
    entries = b""
    for name, content in attached.items():
        entries += _czi_attachment(name, len(out))
        body = struct.pack("<i", len(content)).ljust(16, b"\0") + _czi_attachment(name, len(out))
        out += _segment(b"ZISRAWATTACH", body.ljust(256, b"\0") + content)
    attachments_at = len(out)
    body = struct.pack("<i", len(attached)).ljust(256, b"\0") + entries
    out += _segment(b"ZISRAWATTDIR", body)
    directory_at = len(out)
    out += _segment(b"ZISRAWDIRECTORY", struct.pack("<i", 1).ljust(128, b"\0") + entry)
    header = struct.pack(
        "<iiii16s16siqqiq",
        *(1, 0, 0, 0, b"\1" * 16, b"\1" * 16, 0),
        *(directory_at, metadata_at, 0, attachments_at),
    )
    out[32 : 32 + len(header)] = header
    return bytes(out)


def _segment(name: bytes, body: bytes) -> bytes:
    padded = body + bytes(-len(body) % 32)
    return name.ljust(16, b"\0") + struct.pack("<qq", len(padded), len(body)) + padded


def _czi_entry(at: int, width: int, height: int) -> bytes:
    """Directory entry of a tile at the left upper corner."""
    dimensions = [(b"X", 0, width), (b"Y", 0, height), (b"C", 0, 1), (b"S", 0, 1), (b"M", 0, 0)]
    packed = b"".join(
        struct.pack("<4siifi", name, start, max(size, 1), 0.0, size)
        for name, start, size in dimensions
    )
    return struct.pack("<2siqiiB5si", b"DV", _BGR24, at, 0, 0, 0, b"", len(dimensions)) + packed


def _czi_attachment(name: str, at: int) -> bytes:
    return struct.pack("<2s10sqi16s8s80s", b"A1", b"", at, 0, bytes(16), b"CZI", name.encode())


def images_beside(path: Path) -> list[str]:
    """Names of the associated images, such as label and macro, that OpenSlide reads."""
    import openslide

    try:
        with openslide.OpenSlide(path) as slide:
            associated: Any = slide.associated_images
            return sorted(associated)
    except openslide.OpenSlideError:
        return []

"""Archives: a DICOM series is written anew without label and overview; other sets stay whole."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ml.imaging.deidentify.cleaned import CLEAN_NAME, Cleaned
from ml.imaging.deidentify.dicom import SecondaryImageError, clean_dicom
from ml.imaging.formats.archives import open_archive
from ml.imaging.formats.sniff import is_dicom_slide, read_head
from ml.types import Progress, no_progress

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The earliest date of an archive: the same series gives the same bytes."""
_HEAD_BYTES = 1024  # an object names its class within it
_CHUNK_BYTES = 2**20  # copied at once
_UNNAMED = "names of files"


def deidentify(
    *, path: str, out_dir: str, key: str, progress: Progress = no_progress
) -> dict[str, Any]:
    """As ``ml.imaging.deidentify.copy.deidentify``, of a DICOM object or a ZIP archive.

    Args:
        key: hexadecimal; identifiers that must stay consistent become a hash under it.
    """
    source, target, cleaned = Path(path), Path(out_dir) / CLEAN_NAME, Cleaned()
    progress(0, 100, "taking names out")
    if is_dicom_slide(read_head(source)):
        clean_dicom(source, target, cleaned, key=bytes.fromhex(key))
    else:
        clean_archive(source, target, cleaned, key=bytes.fromhex(key))
    if not cleaned.removed:
        target.unlink(missing_ok=True)
    return asdict(cleaned)


def clean_archive(source: Path, target: Path, cleaned: Cleaned, *, key: bytes) -> None:
    """Clean each object of a series. Of MRXS and VMS sets, what is inside stays and is named."""
    member, made = target.with_suffix(".member"), target.with_suffix(".dcm")
    number = 0
    with (
        open_archive(source) as (archive, files),
        zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out,
    ):
        for entry in sorted(files, key=lambda one: one.filename):
            if not _unpacked(archive, entry, member):
                continue
            try:
                clean_dicom(member, made, cleaned, key=key)
            except SecondaryImageError as error:
                cleaned.took(f"{error.name} image")
                continue
            number += 1
            info = zipfile.ZipInfo(f"{number:04}.dcm", date_time=_LONG_AGO)
            with made.open("rb") as clean, out.open(info, "w", force_zip64=True) as packed:
                shutil.copyfileobj(clean, packed, _CHUNK_BYTES)
    for path in (member, made):
        path.unlink(missing_ok=True)
    if number:
        cleaned.took(_UNNAMED)
    else:
        cleaned.removed.clear()
        cleaned.leaves("label image and notes inside the files of the set")


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> bool:
    """Write a member that is an object of a slide; False where it is something else."""
    with archive.open(entry) as packed, target.open("wb") as plain:
        head = packed.read(_HEAD_BYTES)
        if is_dicom_slide(head):
            plain.write(head)
            shutil.copyfileobj(packed, plain, _CHUNK_BYTES)
        return is_dicom_slide(head)

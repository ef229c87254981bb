"""De-identification of DICOM objects, and of archives with a slide of several files."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import asdict
from pathlib import Path

from ml.imaging.deidentification.dicom import SecondaryImageError, clean_dicom
from ml.imaging.deidentification.mrxs import clean_mrxs
from ml.imaging.deidentification.result import CLEAN_NAME, DeidentificationResult
from ml.imaging.deidentification.videos import clean_video
from ml.imaging.deidentification.vms import clean_vms
from ml.imaging.formats.archives import FIXED_DATE, open_archive, pack
from ml.imaging.formats.dicom_video import fragments_of, is_dicom_video, unwrap_video
from ml.imaging.formats.frame_groups import copy_bytes
from ml.imaging.formats.multi_file import unpack_set
from ml.imaging.formats.sniff import INDEXES, is_dicom_slide, read_head
from ml.imaging.formats.zarr_store import is_zarr
from ml.types import JsonObject, Progress, no_progress

_HEAD_BYTES = 1024  # a DICOM object states its SOP class within these bytes
_CHUNK_BYTES = 2**20  # copied at once
_UNNAMED = "names of files"


def deidentify(
    *, path: str, out_dir: str, key: str, progress: Progress = no_progress
) -> JsonObject:
    """De-identify a DICOM object or a ZIP archive, as ``single_file.deidentify`` does.

    Args:
        key: Hexadecimal; identifiers that must stay consistent are hashed with it.
    """
    source, target, cleaned = Path(path), Path(out_dir) / CLEAN_NAME, DeidentificationResult()
    progress(0, 100, "removing names")
    head = read_head(source)
    if is_dicom_slide(head) or is_dicom_video(head):
        clean_dicom(source, target, cleaned, key=bytes.fromhex(key))
        if is_dicom_video(head):
            _clean_stream(target, cleaned)
    else:
        clean_archive(source, target, cleaned, key=bytes.fromhex(key))
    if not cleaned.removed:
        target.unlink(missing_ok=True)
    return asdict(cleaned)


def _clean_stream(path: Path, cleaned: DeidentificationResult) -> None:
    """Clean the video inside an object as one outside; its fragments stay in place."""
    plain, parts = path.with_suffix(".stream"), fragments_of(path)
    unwrap_video(path, plain)
    clean_video(plain, cleaned)
    with plain.open("rb") as clean, path.open("r+b") as out:
        for start, size in parts:
            out.seek(start)
            copy_bytes(clean, out, size)
    plain.unlink()


def clean_archive(
    source: Path, target: Path, cleaned: DeidentificationResult, *, key: bytes
) -> None:
    """Clean an MRXS, VMS or VMU set, an OME-Zarr, or each object of a DICOM series."""
    if is_zarr(source):
        from ml.imaging.deidentification.ngff import clean_ngff  # zarr-python takes half a second

        clean_ngff(source, target, cleaned)
        return
    with open_archive(source) as (archive, files):
        has_index = any(Path(entry.filename).suffix.lower() in INDEXES for entry in files)
        if not has_index:
            _clean_series(archive, files, target, cleaned, key)
    if has_index:
        _clean_indexed(source, target, cleaned, key)


def _clean_series(
    archive: zipfile.ZipFile,
    files: list[zipfile.ZipInfo],
    target: Path,
    cleaned: DeidentificationResult,
    key: bytes,
) -> None:
    member, clean_path, number = target.with_suffix(".member"), target.with_suffix(".dcm"), 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        for entry in sorted(files, key=lambda item: item.filename):
            if not _unpack_object(archive, entry, member):
                continue
            try:
                clean_dicom(member, clean_path, cleaned, key=key)
            except SecondaryImageError as error:
                cleaned.add_removed(f"{error.name} image")
                continue
            number += 1
            info = zipfile.ZipInfo(f"{number:04}.dcm", date_time=FIXED_DATE)
            with clean_path.open("rb") as clean, out.open(info, "w", force_zip64=True) as packed:
                shutil.copyfileobj(clean, packed, _CHUNK_BYTES)
    for path in (member, clean_path):
        path.unlink(missing_ok=True)
    if number:
        cleaned.add_removed(_UNNAMED)
    else:  # no object of a slide: the inspection that follows reports the kind of file
        cleaned.removed.clear()


def _clean_indexed(source: Path, target: Path, cleaned: DeidentificationResult, key: bytes) -> None:
    folder = target.with_suffix(".set")
    try:
        index = unpack_set(source, folder)
        clean = clean_mrxs if index.suffix.lower() == ".mrxs" else clean_vms
        members = clean(index, cleaned, key=key)
        received = {path for path in folder.rglob("*") if path.is_file()}
        if received - {path for _, path in members}:
            cleaned.add_removed("files that the slide does not need")
        if {path.relative_to(folder).as_posix() for path in received} - {
            name for name, _ in members
        }:
            cleaned.add_removed(_UNNAMED)
        with target.open("wb") as out:
            out.writelines(pack(members))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack_object(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> bool:
    """Write a member that is an object of a slide; False if it is something else."""
    with archive.open(entry) as packed, target.open("wb") as plain:
        head = packed.read(_HEAD_BYTES)
        if is_dicom_slide(head):
            plain.write(head)
            shutil.copyfileobj(packed, plain, _CHUNK_BYTES)
        return is_dicom_slide(head)

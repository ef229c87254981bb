"""Archives: a slide of several files is written again, without label and names, in plain files."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import asdict
from pathlib import Path

from ml.imaging.deidentify.cleaned import CLEAN_NAME, Cleaned
from ml.imaging.deidentify.dicom import SecondaryImageError, clean_dicom
from ml.imaging.deidentify.movies import clean_movie
from ml.imaging.deidentify.mrxs import clean_mrxs
from ml.imaging.deidentify.ngff import clean_ngff
from ml.imaging.deidentify.vms import clean_vms
from ml.imaging.formats.archives import LONG_AGO, open_archive, pack
from ml.imaging.formats.dicom_video import fragments_of, is_dicom_video, unwrap_video
from ml.imaging.formats.frame_groups import copy_bytes
from ml.imaging.formats.sets import unpack_set
from ml.imaging.formats.sniff import INDEXES, is_dicom_slide, read_head
from ml.imaging.formats.zarr_store import is_zarr
from ml.types import JsonObject, Progress, no_progress

_HEAD_BYTES = 1024  # an object names its class within it
_CHUNK_BYTES = 2**20  # copied at once
_UNNAMED = "names of files"


def deidentify(
    *, path: str, out_dir: str, key: str, progress: Progress = no_progress
) -> JsonObject:
    """As ``ml.imaging.deidentify.copy.deidentify``, of a DICOM object or a ZIP archive.

    Args:
        key: hexadecimal; identifiers that must stay consistent become a hash under it.
    """
    source, target, cleaned = Path(path), Path(out_dir) / CLEAN_NAME, Cleaned()
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


def _clean_stream(path: Path, cleaned: Cleaned) -> None:
    """Clean the video inside an object as one outside; its fragments stay where they lie."""
    plain, parts = path.with_suffix(".stream"), fragments_of(path)
    unwrap_video(path, plain)
    clean_movie(plain, cleaned)
    with plain.open("rb") as clean, path.open("r+b") as out:
        for start, size in parts:
            out.seek(start)
            copy_bytes(clean, out, size)
    plain.unlink()


def clean_archive(source: Path, target: Path, cleaned: Cleaned, *, key: bytes) -> None:
    """Clean an MRXS, VMS or VMU set, an OME-Zarr, or each object of a DICOM series."""
    if is_zarr(source):
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
    cleaned: Cleaned,
    key: bytes,
) -> None:
    member, made, number = target.with_suffix(".member"), target.with_suffix(".dcm"), 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        for entry in sorted(files, key=lambda one: one.filename):
            if not _unpacked(archive, entry, member):
                continue
            try:
                clean_dicom(member, made, cleaned, key=key)
            except SecondaryImageError as error:
                cleaned.took(f"{error.name} image")
                continue
            number += 1
            info = zipfile.ZipInfo(f"{number:04}.dcm", date_time=LONG_AGO)
            with made.open("rb") as clean, out.open(info, "w", force_zip64=True) as packed:
                shutil.copyfileobj(clean, packed, _CHUNK_BYTES)
    for path in (member, made):
        path.unlink(missing_ok=True)
    if number:
        cleaned.took(_UNNAMED)
    else:  # nothing is left of it: the look that follows says what it is
        cleaned.removed.clear()


def _clean_indexed(source: Path, target: Path, cleaned: Cleaned, key: bytes) -> None:
    folder = target.with_suffix(".set")
    try:
        index = unpack_set(source, folder)
        clean = clean_mrxs if index.suffix.lower() == ".mrxs" else clean_vms
        members = clean(index, cleaned, key=key)
        sent = {path for path in folder.rglob("*") if path.is_file()}
        if sent - {path for _, path in members}:
            cleaned.took("files that the slide does not need")
        if {path.relative_to(folder).as_posix() for path in sent} - {name for name, _ in members}:
            cleaned.took(_UNNAMED)
        with target.open("wb") as out:
            out.writelines(pack(members))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> bool:
    """Write a member that is an object of a slide; False if it is something else."""
    with archive.open(entry) as packed, target.open("wb") as plain:
        head = packed.read(_HEAD_BYTES)
        if is_dicom_slide(head):
            plain.write(head)
            shutil.copyfileobj(packed, plain, _CHUNK_BYTES)
        return is_dicom_slide(head)

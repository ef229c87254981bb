"""De-identification of one file by its format; DICOM and archives: ``multi_file``.

Runs in the confined child process. Tiles, frames and coded pixels keep their bytes: fields are
overwritten in place, or the container is rewritten around the pixels.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ml.imaging.deidentification.jpeg2000 import clean_jpeg2000
from ml.imaging.deidentification.result import CLEAN_NAME, DeidentificationResult
from ml.imaging.deidentification.stills import clean_jpeg, clean_png, clean_webp
from ml.imaging.deidentification.tiff import clean_tiff
from ml.imaging.deidentification.videos import clean_video
from ml.imaging.formats.jpeg2000 import is_jpeg2000
from ml.imaging.formats.sniff import read_head, still_format, video_format
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.staining.detection import stain_of_file
from ml.types import JsonObject, Progress, no_progress

InPlace = Callable[[Path, DeidentificationResult], None]
Rewriter = Callable[[Path, Path, DeidentificationResult], None]
_STILLS: dict[str, Rewriter] = {"jpeg": clean_jpeg, "png": clean_png, "webp": clean_webp}


def deidentify(*, path: str, out_dir: str, progress: Progress = no_progress) -> JsonObject:
    """Write ``CLEAN_NAME`` into ``out_dir`` if the file has identifying data.

    Returns:
        ``DeidentificationResult`` as JSON. Without anything removed there is no copy.
    Raises:
        CorruptFileError, UnsupportedFormatError: the container cannot be followed.
    """
    source, target = Path(path), Path(out_dir) / CLEAN_NAME
    head, cleaned = read_head(source), DeidentificationResult(stain=stain_of_file(source))
    progress(0, 100, "removing names")
    rewrite = clean_jpeg2000 if is_jpeg2000(head) else _STILLS.get(still_format(head))
    if rewrite is not None:
        rewrite(source, target, cleaned)
    else:
        _clean_in_place(source, target, cleaned, head)
    if not cleaned.removed:
        target.unlink(missing_ok=True)
    progress(100, 100, "removing names")
    return asdict(cleaned)


def _clean_in_place(
    source: Path, target: Path, cleaned: DeidentificationResult, head: bytes
) -> None:
    """Copy a file and overwrite its fields; the length does not change."""
    clean: InPlace | None = clean_tiff if is_tiff(head) else None
    if video_format(head):
        clean = clean_video
    if clean is not None:
        shutil.copyfile(source, target)
        clean(target, cleaned)
    elif head.startswith(b"ZISRAWFILE"):
        cleaned.add_left("metadata, label and preview inside the CZI file")

"""One copy of a file without what could name a patient, by what the file is. DICOM: ``series``.

Runs in the child process that opens files of users. Tiles, frames and coded pixels keep their
bytes; what is taken out is overwritten in place, or the container is written again around them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ml.imaging.deidentify.cleaned import CLEAN_NAME, Cleaned
from ml.imaging.deidentify.jpeg2000 import clean_jpeg2000
from ml.imaging.deidentify.movies import clean_movie
from ml.imaging.deidentify.pictures import clean_jpeg, clean_png, clean_webp
from ml.imaging.deidentify.tiff_file import clean_tiff
from ml.imaging.formats.jpeg2000 import is_jpeg2000
from ml.imaging.formats.sniff import read_head, still_format, video_format
from ml.imaging.formats.tiff import is_tiff
from ml.imaging.staining import stain_of_file
from ml.types import JsonObject, Progress, no_progress

InPlace = Callable[[Path, Cleaned], None]
Rewriter = Callable[[Path, Path, Cleaned], None]
_STILLS: dict[str, Rewriter] = {"jpeg": clean_jpeg, "png": clean_png, "webp": clean_webp}


def deidentify(*, path: str, out_dir: str, progress: Progress = no_progress) -> JsonObject:
    """Write ``CLEAN_NAME`` into ``out_dir`` where the file holds something to take out.

    Returns:
        ``Cleaned`` as JSON. Without anything removed there is no copy.
    Raises:
        CorruptFileError, UnsupportedFormatError: the container cannot be followed.
    """
    source, target = Path(path), Path(out_dir) / CLEAN_NAME
    head, cleaned = read_head(source), Cleaned(stain=stain_of_file(source))
    progress(0, 100, "removing names")
    rewrite = clean_jpeg2000 if is_jpeg2000(head) else _STILLS.get(still_format(head))
    if rewrite is not None:
        rewrite(source, target, cleaned)
    else:
        _in_place(source, target, cleaned, head)
    if not cleaned.removed:
        target.unlink(missing_ok=True)
    progress(100, 100, "removing names")
    return asdict(cleaned)


def _in_place(source: Path, target: Path, cleaned: Cleaned, head: bytes) -> None:
    """A copy whose fields are overwritten, of the same length."""
    clean: InPlace | None = clean_tiff if is_tiff(head) else None
    if video_format(head):
        clean = clean_movie
    if clean is not None:
        shutil.copyfile(source, target)
        clean(target, cleaned)
    elif head.startswith(b"ZISRAWFILE"):
        cleaned.leaves("metadata, label and preview inside the CZI file")

"""Files from users are opened only by a limited, confined child process; what it said of them.

Until a file is inspected, no other process of the portal hands it to a decoder.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, cast

from ml.config import config_from_dict
from ml.imaging.deidentify.cleaned import CLEAN_NAME, Cleaned
from ml.imaging.formats.archives import is_zip
from ml.imaging.formats.dicom_video import is_dicom_video
from ml.imaging.formats.sniff import SET_FOLDER, FileKind, is_dicom_slide, read_head
from ml.imaging.inspections import LookedThrough, MadeRendition, SlideInspection, VideoInspection
from ml.imaging.sandbox import Limits, run_limited
from ml.types import JsonObject, Progress, no_progress

INSPECT_LIMITS = Limits()
FILMSTRIP_LIMITS = Limits(cpu_s=120, wall_s=120.0, file_bytes=16 * 2**20)
"""Of the small pictures of a timeline, within a request."""
LOOK_LIMITS = Limits(cpu_s=300, wall_s=900.0, file_bytes=2 * 2**20)
"""Of a look at the pixels: sixteen frames of a long video, or an overview that is scaled down from
the finest level of a slide that has no other."""
DICOM_NAME = "slide.dcm"
EVIDENCE_NAME = "evidence.jpg"
FILMSTRIP_NAME = "filmstrip.jpg"
SNIFF_LIMITS = Limits(memory_bytes=1024**3, cpu_s=20, wall_s=60, file_bytes=2**20)
"""Of a look at the first bytes and tags, within a request."""
_CPU_S_PER_MEGAPIXEL = 0.25  # x264 veryfast and the decoder take a tenth on a slow core
_COPY_GROWTH_BYTES = 16 * 2**20  # what a file gains when it is written anew
_NAME_LENGTH = 200  # of a field's name, which comes from the file
_RENDITION_GROWTH = 8  # a rendition is smaller than most originals; the first GiB is free


def file_kind(path: Path) -> FileKind:
    """What an uploaded file is, by its bytes.

    Raises:
        BadInputError: no kind Tessera opens, damaged, or beyond the limits of a look.
    """
    target, arguments = "ml.imaging.formats.sniff:sniff_file", {"path": str(path)}
    found = run_limited(target, arguments, reads=(path,), limits=SNIFF_LIMITS, progress=no_progress)
    return cast(FileKind, found["kind"])


def names_take_out(
    source: Path, folder: Path, *, key: str, progress: Progress
) -> tuple[Path | None, Cleaned]:
    """A copy of a file without what could name somebody, by ``ml.imaging.deidentify`` in a child.

    Returns:
        The copy, or None if nothing was taken out; and what was taken out and left.
    """
    head = read_head(source)
    arguments = {"path": str(source), "out_dir": str(folder)}
    is_set = is_dicom_slide(head) or is_dicom_video(head) or is_zip(head)
    grown = source.stat().st_size + _COPY_GROWTH_BYTES
    found = run_limited(
        f"ml.imaging.deidentify.{'series' if is_set else 'copy'}:deidentify",
        arguments | ({"key": key} if is_set else {}),
        reads=(source,),
        writes=(folder,),
        # an archive's own limits bound what it unpacks to, and it is packed without compression
        limits=INSPECT_LIMITS if is_zip(head) else replace(INSPECT_LIMITS, file_bytes=grown),
        progress=progress,
    )
    cleaned = Cleaned(
        removed=[str(name)[:_NAME_LENGTH] for name in found["removed"]],
        left=[str(sentence)[:_NAME_LENGTH] for sentence in found["left"]],
        stain=str(found["stain"])[:_NAME_LENGTH],
    )
    return (folder / CLEAN_NAME if cleaned.removed else None), cleaned


def slide_inspect(source: Path, folder: Path, *, progress: Progress) -> SlideInspection:
    """``ml.imaging.ingest.inspect_slide`` in a child that sees the source and the folder alone.

    DICOM is read by folder: its file is shown as the only one of a folder, which is kept, so that
    no other asset of the lab ever joins the series.
    """
    if not is_dicom_slide(read_head(source)):
        return _slide(_run("inspect_slide", source, folder, progress, INSPECT_LIMITS))
    alone = folder.parent / "alone"
    alone.mkdir()
    _link(source, alone / DICOM_NAME)
    found = _slide(_run("inspect_slide", alone / DICOM_NAME, folder, progress, INSPECT_LIMITS))
    alone.replace(folder / SET_FOLDER)
    return replace(found, pixels=f"{SET_FOLDER}/{DICOM_NAME}")


def _slide(found: Mapping[str, Any]) -> SlideInspection:
    described = config_from_dict(SlideInspection, found, where="slide")
    _inside(described.thumbnail, described.pixels)
    return described


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # another volume, or no hard links there
        shutil.copyfile(source, target)


def video_inspect(source: Path, folder: Path, *, progress: Progress) -> VideoInspection:
    """``ml.imaging.ingest.inspect_video`` in a child that sees the source and the folder alone."""
    return _video(_run("inspect_video", source, folder, progress, INSPECT_LIMITS))


def _video(found: Mapping[str, Any]) -> VideoInspection:
    described = config_from_dict(VideoInspection, found, where="video")
    _inside(described.frames, described.poster, described.pixels)
    return described


def slide_look(
    source: Path,
    folder: Path,
    *,
    progress: Progress,
    found: SlideInspection,
    text: bool,
    faces: bool,
) -> LookedThrough:
    """``ml.imaging.revealing.look.look_at_slide`` of what was inspected into ``folder``.

    Args:
        faces: of stills alone; in tissue there are none.
    """
    return _looked(
        "look_at_slide",
        {
            "path": str(_pixels(source, folder, found)),
            "text": text,
            "faces": faces and found.kind == "still",
        },
        reads=(folder if found.pixels else source,),
        folder=folder,
        progress=progress,
    )


def video_look(
    source: Path,
    folder: Path,
    *,
    progress: Progress,
    found: VideoInspection,
    text: bool,
    faces: bool,
) -> LookedThrough:
    """The same for a video's frames, by the frame table in ``folder``."""
    from ml.imaging.revealing.look import is_looked_at_by_key_frames

    path, frames = _pixels(source, folder, found), folder / found.frames
    arguments = {
        "path": str(path),
        "frames": str(frames),
        "is_long": is_looked_at_by_key_frames(found.frame_count, found.width_px * found.height_px),
        "text": text,
        "faces": faces,
    }
    return _looked(
        "look_at_video", arguments, reads=(path, frames), folder=folder, progress=progress
    )


def _pixels(source: Path, folder: Path, found: SlideInspection | VideoInspection) -> Path:
    """The file that pixels come from."""
    return folder / found.pixels if found.pixels else source


def _looked(
    function: str,
    arguments: dict[str, Any],
    *,
    reads: tuple[Path, ...],
    folder: Path,
    progress: Progress,
) -> LookedThrough:
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        told = run_limited(
            f"ml.imaging.revealing.look:{function}",
            arguments | {"out_dir": made},
            reads=reads,
            writes=(Path(made),),
            limits=LOOK_LIMITS,
            progress=progress,
        )
        seen = config_from_dict(LookedThrough, told, where="look")
        _inside(seen.picture)
        if seen.picture is not None:
            (Path(made) / seen.picture).replace(folder.parent / EVIDENCE_NAME)
    for one in seen.found:
        numbers = [one.x, one.y, one.width, one.height, one.at_s or 0.0]
        if one.kind not in ("text", "face", "outside") or not all(map(isfinite, numbers)):
            raise ValueError(f"the child reported something impossible: {one!r}")
    return seen


def rendition_make(
    source: Path, folder: Path, *, progress: Progress, found: VideoInspection
) -> MadeRendition:
    """``ml.imaging.ingest.make_rendition``, with limits that grow with the video found."""
    limits = _rendition_limits(source, found)
    path = _pixels(source, folder, found)
    return _rendition(_run("make_rendition", path, folder, progress, limits))


def filmstrip_make(source: Path, folder: Path, frames: Path, frame_count: int, count: int) -> None:
    """Write ``FILMSTRIP_NAME`` into ``folder`` by ``ml.imaging.videos.filmstrip``, in a child.

    Args:
        frames: the video's frame table. count: of the pictures.
    """
    from ml.imaging.videos.filmstrip import DECODED_WHOLE

    with tempfile.TemporaryDirectory(dir=folder) as made:
        run_limited(
            "ml.imaging.ingest:make_filmstrip",
            {
                "path": str(source),
                "out_path": str(Path(made) / FILMSTRIP_NAME),
                "frames": str(frames),
                "count": count,
                "is_long": frame_count > DECODED_WHOLE,
            },
            reads=(source, frames),
            writes=(Path(made),),
            limits=FILMSTRIP_LIMITS,
            progress=no_progress,
        )
        (Path(made) / FILMSTRIP_NAME).replace(folder / FILMSTRIP_NAME)


def _rendition(found: Mapping[str, Any]) -> MadeRendition:
    made = config_from_dict(MadeRendition, found, where="rendition")
    _inside(made.rendition)
    return made


def _rendition_limits(source: Path, found: VideoInspection) -> Limits:
    megapixels = found.frame_count * found.width_px * found.height_px / 1e6
    cpu_s = INSPECT_LIMITS.cpu_s + round(megapixels * _CPU_S_PER_MEGAPIXEL)
    return Limits(
        cpu_s=cpu_s,
        wall_s=2.0 * cpu_s,
        file_bytes=1024**3 + _RENDITION_GROWTH * source.stat().st_size,
    )


def _run(
    function: str, source: Path, folder: Path, progress: Progress, limits: Limits
) -> JsonObject:
    shown = source.parent if source.name == DICOM_NAME else source
    return run_limited(
        f"ml.imaging.ingest:{function}",
        {"path": str(source), "out_dir": str(folder)},
        reads=(shown,),
        writes=(folder,),
        limits=limits,
        progress=progress,
    )


def _inside(*names: str | None) -> None:
    """Names inside the derived folder, as the child said them: never a way out of that folder."""
    for name in names:
        if name is not None and (not name or Path(name).is_absolute() or ".." in Path(name).parts):
            raise ValueError(f"the child named a file outside its folder: {name!r}")

"""Inspection of uploaded files in a limited, confined child process.

Until a file is inspected, no other process of the portal hands it to a decoder.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, cast, get_args

from ml.config import config_from_dict
from ml.errors import MlError
from ml.imaging.deidentification.result import CLEAN_NAME, DeidentificationResult
from ml.imaging.formats.archives import is_zip
from ml.imaging.formats.dicom_video import is_dicom_video
from ml.imaging.formats.sniff import SET_FOLDER, FileKind, is_dicom_slide, read_head
from ml.imaging.picture_boxes import PREVIEW_NAME, REDACTED_NAME
from ml.imaging.results import (
    PhiDetectionConfig,
    PixelInspection,
    PixelKind,
    RenditionResult,
    SlideInspection,
    VideoInspection,
)
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from ml.types import JsonObject, Progress, no_progress
from portal.core.text import name_clean

INSPECT_LIMITS = Limits()
FILMSTRIP_LIMITS = Limits(cpu_s=120, wall_s=120.0, file_bytes=16 * 2**20)
"""Limits of rendering a filmstrip, which happens within a request."""
PHI_LIMITS = Limits(cpu_s=300, wall_s=900.0, file_bytes=2 * 2**20)
"""Limits of checking the pixels: sixteen frames of a long video, or an overview that is scaled down
from the finest level of a slide that has no other; a page full of text takes 70 s to read."""
PREVIEW_LIMITS = Limits(cpu_s=60, wall_s=90.0)
"""Limits of a picture to draw boxes on, which happens within a request; a slide of several files
is unpacked for it."""
DICOM_NAME = "slide.dcm"
EVIDENCE_NAME = "evidence.jpg"
FILMSTRIP_NAME = "filmstrip.jpg"
SNIFF_LIMITS = Limits(memory_bytes=1024**3, cpu_s=20, wall_s=60, file_bytes=2**20)
"""Limits of reading the first bytes and tags, which happens within a request."""
_CPU_S_PER_MEGAPIXEL = 0.25  # x264 veryfast and the decoder take a tenth on a slow core
_COPY_GROWTH_BYTES = 16 * 2**20  # growth of a file that is rewritten
_DEVICE_LENGTH = 120  # of its column
_NAME_LENGTH = 200  # of a field's name, which comes from the file
_RENDITION_GROWTH = 8  # a rendition is smaller than most originals; the first GiB is free


@dataclass(frozen=True, slots=True)
class Preview:
    """A picture to draw boxes on.

    Attributes:
        picture: JPEG.
        kind: "slide", "still" or "video".
        images: Further images of a slide: "label", "macro".
    """

    picture: bytes
    kind: str
    images: tuple[str, ...]


def file_kind(path: Path) -> FileKind:
    """Detect an uploaded file's kind from its bytes.

    Raises:
        BadInputError: Not a supported kind, damaged, or beyond ``SNIFF_LIMITS``.
    """
    target, arguments = "ml.imaging.formats.sniff:sniff_file", {"path": str(path)}
    sniffed = run_limited(
        target, arguments, reads=(path,), limits=SNIFF_LIMITS, progress=no_progress
    )
    return cast(FileKind, sniffed["kind"])


def names_take_out(
    source: Path, folder: Path, *, key: str, progress: Progress
) -> tuple[Path | None, DeidentificationResult]:
    """De-identify a copy of a file in a child process.

    Returns:
        The copy, or None if nothing was removed; and the names of removed and remaining data.
    """
    head = read_head(source)
    arguments = {"path": str(source), "out_dir": str(folder)}
    is_set = is_dicom_slide(head) or is_dicom_video(head) or is_zip(head)
    grown = source.stat().st_size + _COPY_GROWTH_BYTES
    report = run_limited(
        f"ml.imaging.deidentification.{'multi_file' if is_set else 'single_file'}:deidentify",
        arguments | ({"key": key} if is_set else {}),
        reads=(source,),
        writes=(folder,),
        # an archive's own limits bound what it unpacks to, and it is packed without compression
        limits=INSPECT_LIMITS if is_zip(head) else replace(INSPECT_LIMITS, file_bytes=grown),
        progress=progress,
    )
    cleaned = DeidentificationResult(
        removed=[str(name)[:_NAME_LENGTH] for name in report["removed"]],
        left=[str(sentence)[:_NAME_LENGTH] for sentence in report["left"]],
        stain=str(report["stain"])[:_NAME_LENGTH],
        removed_texts=[str(text) for text in report["removed_texts"]],
    )
    return (folder / CLEAN_NAME if cleaned.removed else None), cleaned


def slide_inspect(source: Path, folder: Path, *, progress: Progress) -> SlideInspection:
    """Run ``ml.imaging.ingest.inspect_slide`` in a child that sees only the source and the folder.

    DICOM files are read by folder: a file is presented as the only one of its folder, so that no
    other asset of the lab joins the series.
    """
    if not is_dicom_slide(read_head(source)):
        return _slide(_run("inspect_slide", source, folder, progress, INSPECT_LIMITS))
    single = folder.parent / "single"
    single.mkdir()
    _link(source, single / DICOM_NAME)
    inspected = _slide(_run("inspect_slide", single / DICOM_NAME, folder, progress, INSPECT_LIMITS))
    single.replace(folder / SET_FOLDER)
    return replace(inspected, pixels=f"{SET_FOLDER}/{DICOM_NAME}")


def _slide(values: Mapping[str, Any]) -> SlideInspection:
    described = config_from_dict(SlideInspection, values, where="slide")
    _inside(described.thumbnail, described.pixels)
    return described


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # another volume, or no hard links there
        shutil.copyfile(source, target)


def video_inspect(source: Path, folder: Path, *, progress: Progress) -> VideoInspection:
    """Run ``ml.imaging.ingest.inspect_video`` in a child that sees only the source and the
    folder."""
    return _video(_run("inspect_video", source, folder, progress, INSPECT_LIMITS))


def _video(values: Mapping[str, Any]) -> VideoInspection:
    described = config_from_dict(VideoInspection, values, where="video")
    _inside(described.frames, described.poster, described.pixels)
    return described


def slide_phi_detect(
    source: Path,
    folder: Path,
    *,
    progress: Progress,
    inspected: SlideInspection,
    config: PhiDetectionConfig,
) -> PixelInspection:
    """Run ``ml.imaging.phi_detection`` in a child on the files inspected into ``folder``.

    Faces are searched for in stills only: tissue has none.
    """
    config = replace(config, faces=config.faces and inspected.kind == "still")
    return _phi_detect(
        "detect_in_slide",
        {"path": str(_pixels(source, folder, inspected)), "config": asdict(config)},
        reads=(folder if inspected.pixels else source,),
        folder=folder,
        progress=progress,
    )


def video_phi_detect(
    source: Path,
    folder: Path,
    *,
    progress: Progress,
    inspected: VideoInspection,
    config: PhiDetectionConfig,
) -> PixelInspection:
    """Run ``ml.imaging.phi_detection`` in a child on frames, by the frame table in ``folder``."""
    from ml.imaging.phi_detection.detection import is_inspected_by_key_frames

    path, frames = _pixels(source, folder, inspected), folder / inspected.frames
    frame_pixels = inspected.width_px * inspected.height_px
    arguments = {
        "path": str(path),
        "frames": str(frames),
        "is_long": is_inspected_by_key_frames(inspected.frame_count, frame_pixels),
        "config": asdict(config),
    }
    return _phi_detect(
        "detect_in_video", arguments, reads=(path, frames), folder=folder, progress=progress
    )


def _pixels(source: Path, folder: Path, inspected: SlideInspection | VideoInspection) -> Path:
    """The file that pixels come from."""
    return folder / inspected.pixels if inspected.pixels else source


def device_read(source: Path, *, progress: Progress) -> str:
    """Maker, model and software as a file names them, read in a child; "" if it names none."""
    try:
        values = run_limited(
            "ml.imaging.redaction.device:device",
            {"path": str(source)},
            reads=(source,),
            limits=SNIFF_LIMITS,
            progress=progress,
        )
    except MlError:  # such as a limit: the estimate uses the size of the picture
        return ""
    return name_clean(str(values["device"]))[:_DEVICE_LENGTH]


def _phi_detect(
    function: str,
    arguments: dict[str, Any],
    *,
    reads: tuple[Path, ...],
    folder: Path,
    progress: Progress,
) -> PixelInspection:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        reply = run_limited(
            f"ml.imaging.phi_detection.detection:{function}",
            arguments | {"out_dir": scratch},
            reads=reads,
            writes=(Path(scratch),),
            limits=PHI_LIMITS,
            progress=progress,
        )
        inspected = config_from_dict(PixelInspection, reply, where="pixels")
        _inside(inspected.picture)
        if inspected.picture is not None:
            (Path(scratch) / inspected.picture).replace(folder.parent / EVIDENCE_NAME)
    for finding in inspected.findings:
        numbers = [finding.x, finding.y, finding.width, finding.height, finding.at_s or 0.0]
        if finding.kind not in get_args(PixelKind) or not all(map(isfinite, numbers)):
            raise ValueError(
                f"the child reported something impossible: {finding.kind!r} at {numbers}"
            )
    return inspected


def rendition_make(
    source: Path, folder: Path, *, progress: Progress, inspected: VideoInspection
) -> RenditionResult:
    """``ml.imaging.ingest.make_rendition``, with limits that grow with the video found."""
    limits = _rendition_limits(source, inspected)
    path = _pixels(source, folder, inspected)
    return _rendition(_run("make_rendition", path, folder, progress, limits))


def slide_redact(
    source: Path,
    folder: Path,
    *,
    progress: Progress,
    derived: Path,
    inspected: SlideInspection,
    boxes: Sequence[Sequence[float]],
) -> Path:
    """Write a still or a slide, inspected into ``derived``, with black boxes into ``folder``."""
    arguments: dict[str, Any] = {"boxes": boxes}
    function, path = "redact_still", source
    if inspected.kind != "still":
        function, path = "redact_slide", _pixels(source, derived, inspected)
        if inspected.display_range is not None:
            arguments["display_range"] = asdict(inspected.display_range)
    reads = (derived,) if path != source else (source,)
    megapixels = inspected.width_px * inspected.height_px / 1e6
    limits = _rewriting_limits(path, megapixels)
    return _redact(function, path, folder, arguments, reads=reads, limits=limits, progress=progress)


def video_redact(
    source: Path,
    folder: Path,
    *,
    progress: Progress,
    derived: Path,
    inspected: VideoInspection,
    boxes: Sequence[Sequence[float]],
) -> Path:
    """Write a video, inspected into ``derived``, with black boxes into ``folder``."""
    path, frames = _pixels(source, derived, inspected), derived / inspected.frames
    return _redact(
        "redact_video",
        path,
        folder,
        {"boxes": boxes, "frames": str(frames)},
        reads=(path, frames),
        limits=_rendition_limits(path, inspected),
        progress=progress,
    )


def _redact(
    function: str,
    path: Path,
    folder: Path,
    arguments: Mapping[str, Any],
    *,
    reads: Sequence[Path],
    limits: Limits,
    progress: Progress,
) -> Path:
    run_limited(
        f"ml.imaging.redaction.redact:{function}",
        {"path": str(path), "out_dir": str(folder), **arguments},
        reads=reads,
        writes=(folder,),
        limits=limits,
        progress=progress,
    )
    return folder / REDACTED_NAME


def preview_make(source: Path, folder: Path, *, image: str, at: float) -> Preview:
    """Write ``PREVIEW_NAME`` into ``folder`` by ``ml.imaging.redaction.preview``, in a child.

    Args:
        image: "label" or "macro" of a slide; "" for the picture itself.
        at: Place of the frame in a video, as a share of its length.
    Raises:
        MlError: As ``preview``.
    """
    readable = source
    if is_dicom_slide(read_head(source)):  # read by folder, as in ``slide_inspect``
        readable = folder / "single" / DICOM_NAME
        readable.parent.mkdir()
        _link(source, readable)
    out_dir = folder / "made"
    out_dir.mkdir()
    reply = run_limited(
        "ml.imaging.redaction.preview:preview",
        {"path": str(readable), "out_dir": str(out_dir), "image": image, "at": at},
        reads=(readable.parent if readable != source else source,),
        writes=(out_dir,),
        limits=PREVIEW_LIMITS,
        progress=no_progress,
    )
    names = tuple(name for name in ("label", "macro") if name in reply["images"])
    return Preview((out_dir / PREVIEW_NAME).read_bytes(), str(reply["kind"]), names)


def filmstrip_make(source: Path, folder: Path, frames: Path, frame_count: int, count: int) -> None:
    """Write ``FILMSTRIP_NAME`` into ``folder`` by ``ml.imaging.videos.filmstrip``, in a child.

    Args:
        frames: the video's frame table.
        count: of the pictures.
    """
    from ml.imaging.videos.filmstrip import MAX_FULL_DECODE_FRAMES

    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        run_limited(
            "ml.imaging.ingest:make_filmstrip",
            {
                "path": str(source),
                "out_path": str(Path(scratch) / FILMSTRIP_NAME),
                "frames": str(frames),
                "count": count,
                "is_long": frame_count > MAX_FULL_DECODE_FRAMES,
            },
            reads=(source, frames),
            writes=(Path(scratch),),
            limits=FILMSTRIP_LIMITS,
            progress=no_progress,
        )
        (Path(scratch) / FILMSTRIP_NAME).replace(folder / FILMSTRIP_NAME)


def clip_make(
    source: Path,
    folder: Path,
    *,
    frames: Path,
    first: int,
    last: int,
    megapixels: float,
    progress: Progress,
) -> Path:
    """Write a clip of a video into ``folder`` by ``ml.imaging.ingest.make_clip``, in a child.

    Args:
        frames: the video's frame table.
        first, last: of the clip, both inclusive.
        megapixels: of all frames of the clip.
    """
    from ml.imaging.ingest import CLIP_NAME

    run_limited(
        "ml.imaging.ingest:make_clip",
        {
            "path": str(source),
            "out_dir": str(folder),
            "frames": str(frames),
            "first": first,
            "last": last,
        },
        reads=(source, frames),
        writes=(folder,),
        limits=_rewriting_limits(source, megapixels),
        progress=progress,
    )
    return folder / CLIP_NAME


def _rendition(values: Mapping[str, Any]) -> RenditionResult:
    result = config_from_dict(RenditionResult, values, where="rendition")
    _inside(result.rendition)
    return result


def _rendition_limits(source: Path, inspected: VideoInspection) -> Limits:
    return _rewriting_limits(
        source, inspected.frame_count * inspected.width_px * inspected.height_px / 1e6
    )


def _rewriting_limits(source: Path, megapixels: float) -> Limits:
    """Limits of decoding and encoding all pixels of a file."""
    cpu_s = INSPECT_LIMITS.cpu_s + round(megapixels * _CPU_S_PER_MEGAPIXEL)
    return Limits(
        cpu_s=cpu_s,
        wall_s=2.0 * cpu_s,
        file_bytes=1024**3 + _RENDITION_GROWTH * source.stat().st_size,
    )


def _run(
    function: str, source: Path, folder: Path, progress: Progress, limits: Limits
) -> JsonObject:
    readable = source.parent if source.name == DICOM_NAME else source
    return run_limited(
        f"ml.imaging.ingest:{function}",
        {"path": str(source), "out_dir": str(folder)},
        reads=(readable,),
        writes=(folder,),
        limits=limits,
        progress=progress,
    )


def _inside(*names: str | None) -> None:
    """Check that names from the child are inside the derived folder."""
    for name in names:
        if name is not None and (not name or Path(name).is_absolute() or ".." in Path(name).parts):
            raise ValueError(f"the child named a file outside its folder: {name!r}")

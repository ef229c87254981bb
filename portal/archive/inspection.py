"""Files from users are opened by a limited, confined child process alone; what it said of them.

Until a file was inspected, no other process of the portal hands it to a decoder.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ml.imaging.formats.sniff import SET_FOLDER, FileKind, is_dicom_slide, read_head
from ml.imaging.sandbox import Limits, run_limited
from ml.types import Progress, no_progress

INSPECT_LIMITS = Limits()
DICOM_NAME = "slide.dcm"
SNIFF_LIMITS = Limits(memory_bytes=1024**3, cpu_s=20, wall_s=60, file_bytes=2**20)
"""Of a look at the first bytes and tags, within a request."""
_CPU_S_PER_MEGAPIXEL = 0.25  # x264 veryfast and the decoder take a tenth on a slow core
_RENDITION_GROWTH = 8  # a rendition is smaller than most originals; the first GiB is free


def file_kind(path: Path) -> FileKind:
    """What an uploaded file is, by its bytes.

    Raises:
        BadInputError: no kind Tessera opens, damaged, or beyond the limits of a look.
    """
    target, arguments = "ml.imaging.formats.sniff:sniff_file", {"path": str(path)}
    found = run_limited(target, arguments, reads=(path,), limits=SNIFF_LIMITS, progress=no_progress)
    return cast(FileKind, found["kind"])


def slide_inspect(source: Path, folder: Path, *, progress: Progress) -> dict[str, Any]:
    """``ml.imaging.ingest.inspect_slide`` in a child that sees the source and the folder alone.

    DICOM is read by folder: its file is shown as the only one of a folder, which is kept, so that
    no other asset of the lab ever joins the series.
    """
    if not is_dicom_slide(read_head(source)):
        return _run("inspect_slide", source, folder, progress, INSPECT_LIMITS)
    alone = folder.parent / "alone"
    alone.mkdir()
    _link(source, alone / DICOM_NAME)
    found = _run("inspect_slide", alone / DICOM_NAME, folder, progress, INSPECT_LIMITS)
    alone.replace(folder / SET_FOLDER)
    return {**found, "pixels": f"{SET_FOLDER}/{DICOM_NAME}"}


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # another volume, or a file system without
        shutil.copyfile(source, target)


def video_inspect(source: Path, folder: Path, *, progress: Progress) -> dict[str, Any]:
    """``ml.imaging.ingest.inspect_video`` in a child that sees the source and the folder alone."""
    return _run("inspect_video", source, folder, progress, INSPECT_LIMITS)


def rendition_make(
    source: Path, folder: Path, *, progress: Progress, found: Mapping[str, Any]
) -> dict[str, Any]:
    """``ml.imaging.ingest.make_rendition``, with time and bytes as the video found has frames."""
    return _run("make_rendition", source, folder, progress, _rendition_limits(source, found))


def _rendition_limits(source: Path, found: Mapping[str, Any]) -> Limits:
    megapixels = found["frame_count"] * found["width_px"] * found["height_px"] / 1e6
    cpu_s = INSPECT_LIMITS.cpu_s + round(megapixels * _CPU_S_PER_MEGAPIXEL)
    return Limits(
        cpu_s=cpu_s,
        wall_s=2.0 * cpu_s,
        file_bytes=1024**3 + _RENDITION_GROWTH * source.stat().st_size,
    )


def _run(
    function: str, source: Path, folder: Path, progress: Progress, limits: Limits
) -> dict[str, Any]:
    shown = source.parent if source.name == DICOM_NAME else source
    return run_limited(
        f"ml.imaging.ingest:{function}",
        {"path": str(source), "out_dir": str(folder)},
        reads=(shown,),
        writes=(folder,),
        limits=limits,
        progress=progress,
    )


def _name(found: object) -> str:
    """A name inside the derived folder, as the child said it: never a way out of that folder."""
    name = str(found)
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"the child named a file outside its folder: {name!r}")
    return name


@dataclass(frozen=True, slots=True)
class SlideInspection:
    """Of a slide or still; see ``ml.imaging.ingest.inspect_slide``.

    Attributes:
        levels: the tile grid, finest first, as kept in ``Canvas.levels``.
        thumbnail, pixels: names inside the derived folder; no pixels means the original's own.
        content_hash: SHA-256 of the file that tiles come from.
    """

    kind: str
    width_px: int
    height_px: int
    mpp_x: float | None
    mpp_y: float | None
    vendor: str
    objective_power: float | None
    properties: dict[str, str]
    levels: list[dict[str, Any]]
    thumbnail: str
    pixels: str | None
    content_hash: str
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Mapping[str, Any], *, content_hash: str) -> SlideInspection:
        """From the child's JSON."""
        return cls(
            kind=str(found["kind"]),
            width_px=int(found["width_px"]),
            height_px=int(found["height_px"]),
            mpp_x=found.get("mpp_x"),
            mpp_y=found.get("mpp_y"),
            vendor=str(found.get("vendor", "")),
            objective_power=found.get("objective_power"),
            properties=dict(found.get("properties", {})),
            levels=list(found["levels"]),
            thumbnail=_name(found["thumbnail"]),
            pixels=None if found.get("pixels") is None else _name(found["pixels"]),
            content_hash=content_hash,
            warnings=tuple(found.get("warnings", ())),
        )


@dataclass(frozen=True, slots=True)
class VideoInspection:
    """Of a video; see ``ml.imaging.ingest.inspect_video``.

    Attributes:
        frames, thumbnail, rendition: names inside the derived folder; no rendition means that the
            browser plays the original.
        media_offset_s: what the rendition took off every frame's time.
    """

    width_px: int
    height_px: int
    codec: str
    container: str
    duration_s: float
    fps: float
    frame_count: int
    time_base_s: float
    frames: str
    thumbnail: str
    rendition: str | None
    media_offset_s: float
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> VideoInspection:
        """From the child's JSON, with that of the rendition where one was made."""
        rendition, offset_pts = found.get("rendition"), int(found.get("offset_pts", 0))
        return cls(
            width_px=int(found["width_px"]),
            height_px=int(found["height_px"]),
            codec=str(found.get("codec", "")),
            container=str(found.get("container", "")),
            duration_s=float(found.get("duration_s", 0)),
            fps=float(found.get("fps", 0)),
            frame_count=int(found["frame_count"]),
            time_base_s=float(found["time_base_s"]),
            frames=_name(found["frames"]),
            thumbnail=_name(found["poster"]),
            rendition=None if rendition is None else _name(rendition),
            media_offset_s=offset_pts * float(found["time_base_s"]),
            warnings=tuple(found.get("warnings", ())),
        )

"""Functions for the limited child process: check, describe and convert an uploaded file.

Writes only into ``out_dir``, or to ``out_path``; running it again writes the same files again. The
results are plain JSON, since they cross a process boundary.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from ml.errors import UnsupportedFormatError
from ml.imaging.formats.archives import is_zip
from ml.imaging.formats.dicom_video import is_dicom_video, unwrap_video
from ml.imaging.formats.multi_file import unpack_set
from ml.imaging.formats.sniff import PIXELS_NAME, SET_FOLDER, FileKind, read_head, sniff
from ml.imaging.formats.tiff import check_claims, is_ndpi
from ml.imaging.formats.tiff_fields import is_tiff
from ml.imaging.formats.tiff_layout import read_layout
from ml.imaging.formats.zarr_store import is_zarr
from ml.imaging.modality import propose_modality
from ml.imaging.results import RenditionResult, SlideInspection, VideoInspection
from ml.imaging.slides.jpeg import encode_jpeg
from ml.imaging.slides.metadata import scale_warning
from ml.imaging.slides.pyramids import write_pyramid
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.imaging.slides.stills import still_range
from ml.imaging.slides.tiles import TileSource
from ml.imaging.staining.detection import stain_of_file
from ml.imaging.videos.filmstrip import FILMSTRIP_QUALITY, evenly, filmstrip
from ml.imaging.videos.frame_table_file import load_frame_table, save_frame_table
from ml.imaging.videos.transcode import transcode_h264, write_clip
from ml.imaging.videos.video import poster_frame, probe_video
from ml.types import JsonObject, Progress, SlideInfo, no_progress

THUMBNAIL_PX = 512  # twice a card of the list, for screens of double density
THUMBNAIL_NAME = "thumbnail.jpg"
POSTER_NAME, FRAMES_NAME, RENDITION_NAME = "poster.jpg", "frames.npz", "rendition.mp4"
CLIP_NAME = "clip.mp4"
UNWRAPPED_NAME = "unwrapped"
"""Name of the video extracted from a DICOM object."""


def inspect_slide(*, path: str, out_dir: str, progress: Progress = no_progress) -> JsonObject:
    """Check a slide or still, write its thumbnail, and for a still its tiled pyramid.

    A ZIP archive is a slide of several files: it is unpacked into ``out_dir``, except for OME-Zarr,
    which becomes a tiled pyramid, as a still does.

    Returns:
        ``SlideInspection`` as JSON.
    Raises:
        UnsupportedFormatError: neither a slide nor an image.
        CorruptFileError: cut or damaged: every stored tile must be inside the file, and sampled
            tiles of every level, including the last ones, must decode.
        TooLargeError: it claims more pixels than ``ml.imaging.limits`` allows.
    """
    source, folder = Path(path), Path(out_dir)
    kind, pixels = _pixels(source, folder, progress)
    display_range = still_range(source) if kind == "still" else None
    with open_slide(pixels or source, display_range=display_range) as slide:
        _check_pixels(slide, progress)
        info = slide.info
        picture = slide.thumbnail(THUMBNAIL_PX)
        thumbnail = encode_jpeg(picture, icc_profile=slide.icc_profile)
        (folder / THUMBNAIL_NAME).write_bytes(thumbnail)
        modality = propose_modality(picture).modality if kind == "still" else "histology"
        has_icc = slide.icc_profile is not None
    with TileSource(pixels or source, display_range=info.display_range) as tiles:
        tiles.tile(len(tiles.levels) - 1, 0, 0)
    progress(100, 100, "storing")
    name = pixels.relative_to(folder).as_posix() if pixels else None
    vendor = {"still": "still"}.get(kind, "ome-zarr" if name == PIXELS_NAME else info.vendor)
    stain = stain_of_file(source if name in (None, PIXELS_NAME) else folder / name)
    description = _description(kind, info, name, vendor, has_icc=has_icc)
    return asdict(replace(description, stain=stain, modality=modality, warnings=_warnings(source)))


def _warnings(source: Path) -> tuple[str, ...]:
    """Warnings about parts of a TIFF that are not shown."""
    if not is_tiff(read_head(source)) or is_ndpi(source):
        return ()
    layout = read_layout(source)
    sentences = [scale_warning(layout)]
    if hidden := len(layout.planes):
        sentences.append(
            f"The file holds {hidden + 1:,} pages of this size. Only the first is shown; "
            f"{hidden:,} {'is' if hidden == 1 else 'are'} left out. Save each page as a file "
            "of its own to see it."
        )
    return tuple(sentence for sentence in sentences if sentence)


def _pixels(source: Path, folder: Path, progress: Progress) -> tuple[FileKind, Path | None]:
    """Return the kind of file, and the file in ``folder`` with the tiles, None for the source."""
    if is_tiff(read_head(source)):
        check_claims(source)
    kind = sniff(source)
    if is_zip(read_head(source)):
        return kind, unpack_slide(source, folder, progress)
    if kind == "video":
        raise UnsupportedFormatError("the file is a video; upload it as a video of the case")
    if kind != "still":
        return kind, None
    pixels = write_pyramid(source, folder / PIXELS_NAME, progress=_scale_progress(progress))
    return kind, pixels


def unpack_slide(source: Path, folder: Path, progress: Progress = no_progress) -> Path:
    """Unpack an archive into a folder and return the file to open there; see ``inspect_slide``."""
    if is_zarr(source):
        from ml.imaging.slides.ngff import write_ngff_pyramid  # zarr-python takes half a second

        return write_ngff_pyramid(source, folder / PIXELS_NAME, _scale_progress(progress))
    return unpack_set(source, folder / SET_FOLDER, progress)


def inspect_video(*, path: str, out_dir: str, progress: Progress = no_progress) -> JsonObject:
    """Check a video, write its frame table and poster, and for a DICOM object the video itself.

    ``frames.npz`` holds the fields of ``FrameTable``.

    Returns:
        ``VideoInspection`` as JSON.
    Raises:
        UnsupportedFormatError: not a video, or as ``unwrap_video``.
        NoVideoStreamError, CorruptFileError, TooLargeError: as ``probe_video``.
    """
    folder, source = Path(out_dir), Path(path)
    if (kind := sniff(source)) != "video":
        raise UnsupportedFormatError(f"the file is a {kind}; upload it as a slide of the case")
    is_wrapped = is_dicom_video(read_head(source))
    if is_wrapped:
        source = unwrap_video(source, folder / UNWRAPPED_NAME)
    info = probe_video(source, progress=progress)
    table = info.frames
    save_frame_table(table, folder / FRAMES_NAME)
    (folder / POSTER_NAME).write_bytes(encode_jpeg(poster_frame(source, info)))
    progress(100, 100, "storing")
    inspection = VideoInspection(
        kind="video",
        geometry=info.geometry,
        codec=info.codec,
        container=info.container,
        frame_count=len(table),
        duration_s=info.duration_s,
        fps=info.fps,
        time_base_s=table.time_base_s,
        browser_playable=info.browser_playable,
        warnings=tuple(info.warnings),
        frames=FRAMES_NAME,
        poster=POSTER_NAME,
        pixels=UNWRAPPED_NAME if is_wrapped else None,
    )
    return asdict(inspection)


def make_rendition(*, path: str, out_dir: str, progress: Progress = no_progress) -> JsonObject:
    """Transcode a video that browsers cannot play to H.264, with the frames of its table.

    ``inspect_video`` must have written that table into ``out_dir``.

    Returns:
        ``RenditionResult`` as JSON.
    Raises:
        NoVideoStreamError, CorruptFileError, TooLargeError, LimitExceededError: as
            ``transcode_h264``.
    """
    table = load_frame_table(Path(out_dir) / FRAMES_NAME)
    rendition = transcode_h264(path, Path(out_dir) / RENDITION_NAME, progress, table=table)
    return asdict(RenditionResult(RENDITION_NAME, rendition.offset_pts))


def make_clip(
    *,
    path: str,
    out_dir: str,
    frames: str,
    first: int,
    last: int,
    progress: Progress = no_progress,
) -> JsonObject:
    """Write the frames ``first`` to ``last`` of a video as ``CLIP_NAME``; see ``write_clip``.

    Args:
        frames: path of the video's frame table.
    Returns:
        Their number: ``{"frames": n}``.
    Raises:
        NoVideoStreamError, CorruptFileError, TooLargeError, LimitExceededError: as ``write_clip``.
    """
    table, target = load_frame_table(frames), Path(out_dir) / CLIP_NAME
    clip = write_clip(path, target, table=table, first=first, last=last, progress=progress)
    return {"frames": clip.frames}


def make_filmstrip(
    *,
    path: str,
    out_path: str,
    frames: str,
    count: int,
    is_long: bool,
    progress: Progress = no_progress,
) -> JsonObject:
    """Write the small pictures of a timeline as one JPEG; see ``ml.imaging.videos.filmstrip``.

    Args:
        frames: path of the video's frame table.
        count: of the pictures.
    Returns:
        Their number: ``{"count": n}``.
    Raises:
        NoVideoStreamError, CorruptFileError, TooLargeError: as ``probe_video``.
    """
    table = load_frame_table(frames)
    strip = filmstrip(path, table, evenly(table, count), is_long=is_long)
    Path(out_path).write_bytes(encode_jpeg(strip, quality=FILMSTRIP_QUALITY))
    return {"count": count}


def _scale_progress(progress: Progress) -> Progress:
    """Scale the progress of a part that is four fifths of the work."""

    def scaled(done: int, total: int, phase: str) -> None:
        progress(done * 8 // 10, total, phase)

    return scaled


def _check_pixels(slide: SlideImage, progress: Progress) -> None:
    count = len(slide.stored)
    for number, level in enumerate(slide.stored):
        progress(80 + 15 * number // count, 100, "checking")
        tiff = level.directory
        width = tiff.tile_width_px if tiff else 256
        height = tiff.tile_height_px if tiff else 256
        for x in _probe_starts(level.width_px, width):
            for y in _probe_starts(level.height_px, height):
                slide.read_level(number, (x, y), (width, height))


def _probe_starts(extent_px: int, tile_px: int) -> list[int]:
    """Starts of the first, the middle and the last tile along one axis."""
    last = (extent_px - 1) // tile_px
    return sorted({0, last // 2 * tile_px, last * tile_px})


def _description(
    kind: str, info: SlideInfo, pixels: str | None, vendor: str, *, has_icc: bool
) -> SlideInspection:
    return SlideInspection(
        kind=kind,
        width_px=info.width_px,
        height_px=info.height_px,
        mpp_x=info.mpp_x,
        mpp_y=info.mpp_y,
        vendor=vendor,
        objective_power=info.objective_power,
        properties=dict(info.properties) if kind == "slide" else {},
        levels=info.levels,
        has_icc_profile=has_icc,
        thumbnail=THUMBNAIL_NAME,
        pixels=pixels,
        display_range=info.display_range,
    )

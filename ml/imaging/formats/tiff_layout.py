"""Roles of the directories of a TIFF: the displayed image, its levels, everything else.

Decided by sizes, flags and names. The pixels of a level are compared with those of level 0
when the slide is opened: ``ml.imaging.slides.level_content``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.formats.ome import OmeImage, ome_images, secondary_name
from ml.imaging.formats.tiff import TiffDirectory, read_directories

_REDUCED, _MASK = 1, 4
"""Bits of NewSubfileType: TIFF 6.0, section 8."""
_MAX_ASPECT_ERROR = 0.02  # levels whose sides are padded to tiles are off by less
_ROUNDED_PX = 2.0  # a level of a few pixels has a rounded shape
_APERIO_NAMES = {1: "label", 9: "macro"}
"""Image names by Aperio's values of NewSubfileType."""


@dataclass(frozen=True, slots=True, eq=False)
class TiffLayout:
    """The directories of a TIFF by their part.

    Attributes:
        levels: of the image that is shown, the finest first, by their shapes.
        planes: other pages of the size of level 0: a stack of frames, focal planes or channels.
        named_images: all other images, each with its name (``label``, ``macro``, ...) or "".
        ome: OME-XML of the displayed image, None without it.
    """

    levels: tuple[TiffDirectory, ...]
    planes: tuple[TiffDirectory, ...]
    named_images: tuple[tuple[TiffDirectory, str], ...]
    ome: OmeImage | None


def read_layout(path: str | Path) -> TiffLayout:
    """Read the layout of a file.

    Raises:
        CorruptFileError: its first image has no width or height, or as ``read_directories``.
        UnsupportedFormatError, TooLargeError: as ``read_directories``.
    """
    return layout_of(read_directories(path))


def layout_of(pages: Sequence[TiffDirectory]) -> TiffLayout:
    """The layout of a main chain of directories.

    Level 0 is the largest image that is not called a label or macro, is no mask, and is not flagged
    as the reduced version of another. Its levels are its SubIFDs, or, if it has none,
    smaller images of its shape and kind of samples.

    Raises:
        CorruptFileError: no image has a width and a height.
    """
    images = ome_images(pages[0].description)
    directories = [image for page in pages for image in (page, *page.sub_ifds) if _has_size(image)]
    if not directories:
        raise CorruptFileError("the TIFF file's first image has no width or height")
    names = {
        directory.offset: _name(pages[directory.page], directory, images)
        for directory in directories
    }
    base = _largest(directories, names)
    levels = [base]
    for image in _smaller(base, directories):
        if names[image.offset] in ("", "thumbnail") and has_shape_of_level(image, base, levels[-1]):
            levels.append(image)
    planes = [
        directory
        for directory in directories
        if directory.sub_ifd < 0 and directory is not base and _is_plane(directory, base, names)
    ]
    picture_offsets = {image.offset for image in (*levels, *planes)}
    return TiffLayout(
        tuple(levels),
        tuple(planes),
        tuple(
            (directory, names[directory.offset])
            for directory in directories
            if directory.offset not in picture_offsets
        ),
        _ome_image(base, images),
    )


def has_shape_of_level(directory: TiffDirectory, base: TiffDirectory, finer: TiffDirectory) -> bool:
    """Return whether a directory may be a level of ``base``: same samples, smaller, its shape."""
    return (
        directory.is_tiled
        and directory.width_px < finer.width_px
        and directory.height_px <= finer.height_px
        and (directory.samples, directory.bits) == (base.samples, base.bits)
        and not directory.subfile & _MASK
        and bool(directory.counts.any())
        and has_shape((directory.width_px, directory.height_px), (base.width_px, base.height_px))
    )


def has_shape(size: tuple[int, int], of: tuple[int, int]) -> bool:
    """Return whether two sizes (width, height) have the same proportions, but for rounding."""
    aspect = (size[0] / size[1]) / (of[0] / of[1])
    return abs(aspect - 1) <= _MAX_ASPECT_ERROR + _ROUNDED_PX / min(size)


def _has_size(directory: TiffDirectory) -> bool:
    return directory.width_px >= 1 and directory.height_px >= 1


def _largest(directories: Sequence[TiffDirectory], names: dict[int, str]) -> TiffDirectory:
    plain = [directory for directory in directories if not directory.subfile & (_REDUCED | _MASK)]
    tests = (
        [image for image in plain if not names[image.offset]],
        [directory for directory in directories if not names[directory.offset]],
        directories,
    )
    candidates = next(passing for passing in tests if passing)
    return max(
        candidates, key=lambda image: image.width_px * image.height_px
    )  # the first of equals


def _smaller(base: TiffDirectory, directories: Sequence[TiffDirectory]) -> Iterator[TiffDirectory]:
    """Candidates for levels, the largest first."""
    sub_ifds = [
        directory
        for directory in directories
        if directory.page == base.page and directory.sub_ifd >= 0 and directory is not base
    ]
    candidates = sub_ifds or [
        directory for directory in directories if directory.sub_ifd < 0 and directory is not base
    ]
    yield from sorted(candidates, key=lambda image: -image.width_px)


def _is_plane(directory: TiffDirectory, base: TiffDirectory, names: dict[int, str]) -> bool:
    return (
        (directory.width_px, directory.height_px) == (base.width_px, base.height_px)
        and not names[directory.offset]
        and not directory.subfile & _MASK
    )


def _name(page: TiffDirectory, directory: TiffDirectory, images: Sequence[OmeImage]) -> str:
    """A directory's name ("label", "macro", ...), by the text of its page or by OME-XML, or ""."""
    subfile = _APERIO_NAMES.get(directory.subfile, "")
    if subfile and directory.description.startswith("Aperio"):
        return subfile
    texts = [image.name for image in images if directory.page in image.pages]
    texts += [text.description for text in (directory, page) if not (images and text.page == 0)]
    return next((name for text in texts if (name := secondary_name(text))), "")


def _ome_image(base: TiffDirectory, images: Sequence[OmeImage]) -> OmeImage | None:
    images_of_page = [image for image in images if base.page in image.pages]
    sized = [image for image in images if image.size_px == (base.width_px, base.height_px)]
    return next(iter(images_of_page or sized), None)

"""Images of a TIFF that show the scanned tissue, which de-identification keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import ParseError

import numpy as np
import numpy.typing as npt
import pyvips
from defusedxml import DefusedXmlException, ElementTree

from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.formats.tiff import TiffDirectory, check_claims, read_directories
from ml.imaging.formats.tiff_layout import TiffLayout, has_shape, layout_of
from ml.imaging.slides.backends import slide_vendor
from ml.imaging.slides.grid import NATIVE_VENDORS
from ml.imaging.slides.level_content import MAX_FULL_READ_PIXELS, same_content
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.imaging.slides.stills import load_directory, to_rgb
from ml.types import ImageU8


@dataclass(frozen=True, slots=True)
class TiffImages:
    """Contents of a file's directories.

    Attributes:
        tissue: offsets of the directories of the scanned tissue; None if only names decide.
        names: ("label", "macro", ...) by the offset of their directory, where something states one.
        stored_at: offsets of the tiles and strips of these directories: (N,) uint64, sorted.
    """

    tissue: frozenset[int] | None = None
    names: dict[int, str] = field(default_factory=dict)
    stored_at: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))


def images_of(path: Path, cleaned: DeidentificationResult) -> TiffImages:
    """Keep the levels that are shown, other pages of the size of level 0, smaller copies of it.

    Of formats whose images OpenSlide combines itself, all but the named labels stays. Pages of the
    size of level 0 are recorded as left, except the planes of an OME image.
    """
    check_claims(path)
    pages = read_directories(path)
    layout = layout_of(pages)
    names = {directory.offset: name for directory, name in layout.named_images if name}
    if slide_vendor(path) not in (None, *NATIVE_VENDORS):
        names = {at: name for at, name in names.items() if name != "thumbnail"}
        macros = _scn_macro_pages(pages[0].description)
        return TiffImages(
            None, names | {pages[at].offset: "macro" for at in macros if at < len(pages)}
        )
    directories = [layout.levels[0], *layout.planes]
    ome_pages = layout.ome.pages if layout.ome else frozenset()
    if hidden := sum(plane.page not in ome_pages for plane in layout.planes):
        cleaned.add_left(f"pages of the size of the picture that are not shown ({hidden:,})")
    if layout.levels[0].is_tiled:
        directories += _copies(path, layout)
    stored_at = np.unique(np.concatenate([directory.offsets for directory in directories]))
    return TiffImages(frozenset(directory.offset for directory in directories), names, stored_at)


def _scn_macro_pages(description: str) -> list[int]:
    """Pages of the image of the entire glass, with its label, in Leica's SCN; [] of other formats.

    That is the image whose view is the entire collection, as in OpenSlide.
    """
    text = description.strip("\ufeff\0 \r\n\t")
    if not text.startswith("<") or "leica-microsystems.com/scn" not in text:
        return []
    try:
        root = ElementTree.fromstring(text.encode(), forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError):
        return []
    page_numbers = []
    for collection in root.iterfind("{*}collection"):
        full_view = [collection.get("sizeX"), collection.get("sizeY"), "0", "0"]
        for image in collection.iterfind("{*}image"):
            views = image.iterfind("{*}view")
            names = ("sizeX", "sizeY", "offsetX", "offsetY")
            if any([view.get(name) for name in names] == full_view for view in views):
                page_numbers += [
                    page.get("ifd", "") for page in image.iterfind("{*}pixels/{*}dimension")
                ]
    return [int(page) for page in page_numbers if page.isascii() and page.isdigit()]


def _copies(path: Path, layout: TiffLayout) -> list[TiffDirectory]:
    """Other directories of a tiled slide that are reduced copies of its level 0."""
    with open_slide(path) as slide:
        sizes = {(level.width_px, level.height_px) for level in slide.stored}
        sizes |= {size[::-1] for size in sizes}  # of a slide that is shown turned
        return [
            directory
            for directory in layout.levels[1:]
            if (directory.width_px, directory.height_px) in sizes
        ] + [
            directory
            for directory, name in layout.named_images
            if name in ("", "thumbnail") and _is_reduced_copy(slide, path, directory)
        ]


def _is_reduced_copy(slide: SlideImage, path: Path, directory: TiffDirectory) -> bool:
    """Return whether a directory of a slide's file is a reduced copy, such as a thumbnail."""
    size = (directory.width_px, directory.height_px)
    first = (slide.stored[0].width_px, slide.stored[0].height_px)
    finer = [level for level in slide.stored if level.width_px >= size[0]]
    if not finer or not has_shape(size, first) or size[0] * size[1] > MAX_FULL_READ_PIXELS:
        return False
    try:
        small = to_rgb(load_directory(path, directory)).numpy()
    except pyvips.Error:
        return False
    number = len(finer) - 1

    def of_slide(x: int, y: int, width: int, height: int) -> ImageU8:
        return slide.read_level(number, (x, y), (width, height))

    def of_directory(x: int, y: int, width: int, height: int) -> ImageU8:
        return np.asarray(small[y : y + height, x : x + width])

    return same_content(of_directory, size, of_slide, (finer[-1].width_px, finer[-1].height_px))

"""Images of a TIFF that are the scanned tissue, and so stay when names are taken out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import ParseError

import numpy as np
import numpy.typing as npt
import pyvips
from defusedxml import DefusedXmlException, ElementTree

from ml.imaging.deidentify.cleaned import Cleaned
from ml.imaging.formats.tiff import TiffDirectory, check_claims, read_directories
from ml.imaging.formats.tiff_layout import TiffLayout, has_shape, layout_of
from ml.imaging.slides import SlideImage, open_slide
from ml.imaging.slides.contents import READ_WHOLE_PIXELS, same_content
from ml.imaging.slides.grid import NATIVE_VENDORS
from ml.imaging.slides.readers import slide_vendor
from ml.imaging.slides.stills import load_directory, to_rgb
from ml.types import ImageU8


@dataclass(frozen=True, slots=True)
class TiffImages:
    """Contents of a file's directories.

    Attributes:
        kept: offsets of the directories of the scanned tissue; None if only names decide.
        names: ("label", "macro", ...) by the offset of their directory, where something states one.
        stored_at: offsets of the tiles and strips that are kept: (N,) uint64, sorted.
    """

    kept: frozenset[int] | None = None
    names: dict[int, str] = field(default_factory=dict)
    stored_at: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))


def images_of(path: Path, cleaned: Cleaned) -> TiffImages:
    """Keep the levels that are shown, other pages of the size of level 0, smaller copies of it.

    Of formats whose images OpenSlide puts together in its own way all stays that no text calls a
    label. Pages of the size of level 0 are noted as left, but for the planes of an OME image.
    """
    check_claims(path)
    pages = read_directories(path)
    layout = layout_of(pages)
    names = {one.offset: name for one, name in layout.others if name}
    if slide_vendor(path) not in (None, *NATIVE_VENDORS):
        names = {at: name for at, name in names.items() if name != "thumbnail"}
        macros = _scn_macro_pages(pages[0].description)
        return TiffImages(
            None, names | {pages[at].offset: "macro" for at in macros if at < len(pages)}
        )
    shown = [layout.levels[0], *layout.planes]
    described = layout.ome.pages if layout.ome else frozenset()
    if unseen := sum(one.page not in described for one in layout.planes):
        cleaned.leaves(f"pages of the size of the picture that are not shown ({unseen:,})")
    if layout.levels[0].is_tiled:
        shown += _copies(path, layout)
    stored_at = np.unique(np.concatenate([one.offsets for one in shown]))
    return TiffImages(frozenset(one.offset for one in shown), names, stored_at)


def _scn_macro_pages(description: str) -> list[int]:
    """Pages of the picture of the whole glass, with its label, in Leica's SCN; [] of other formats.

    It is the image whose view is the whole collection, as OpenSlide decides it.
    """
    text = description.strip("\ufeff\0 \r\n\t")
    if not text.startswith("<") or "leica-microsystems.com/scn" not in text:
        return []
    try:
        root = ElementTree.fromstring(text.encode(), forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError):
        return []
    found = []
    for collection in root.iterfind("{*}collection"):
        whole = [collection.get("sizeX"), collection.get("sizeY"), "0", "0"]
        for image in collection.iterfind("{*}image"):
            views = image.iterfind("{*}view")
            names = ("sizeX", "sizeY", "offsetX", "offsetY")
            if any([view.get(name) for name in names] == whole for view in views):
                found += [one.get("ifd", "") for one in image.iterfind("{*}pixels/{*}dimension")]
    return [int(one) for one in found if one.isascii() and one.isdigit()]


def _copies(path: Path, layout: TiffLayout) -> list[TiffDirectory]:
    """The other directories of a tiled slide that show the same as its level 0, smaller."""
    with open_slide(path) as slide:
        sizes = {(level.width_px, level.height_px) for level in slide.stored}
        sizes |= {size[::-1] for size in sizes}  # of a slide that is shown turned
        return [one for one in layout.levels[1:] if (one.width_px, one.height_px) in sizes] + [
            one
            for one, name in layout.others
            if name in ("", "thumbnail") and _shows_the_same(slide, path, one)
        ]


def _shows_the_same(slide: SlideImage, path: Path, directory: TiffDirectory) -> bool:
    """Return whether a directory of a slide's file is a reduced copy, such as a thumbnail."""
    size = (directory.width_px, directory.height_px)
    first = (slide.stored[0].width_px, slide.stored[0].height_px)
    finer = [one for one in slide.stored if one.width_px >= size[0]]
    if not finer or not has_shape(size, first) or size[0] * size[1] > READ_WHOLE_PIXELS:
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

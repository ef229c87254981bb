"""The DICOM objects of a slide: those of its own file, or one for each level of any other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from ml.errors import BadInputError, MlError
from ml.imaging.dicom import encoding
from ml.imaging.dicom.encoding import JPEG_BASELINE, Coding, SlideDescription
from ml.imaging.dicom.objects import StoredObject
from ml.imaging.dicom.transfer_syntax import baseline
from ml.imaging.dicom.uids import MAX_INSTANCES, instance_id, uid_of
from ml.imaging.dicom.writing import add_offsets, coded_pixels, head_of, head_parts
from ml.imaging.formats.sniff import is_dicom_slide, read_head
from ml.types import Level
from portal.archive.models import Canvas
from portal.archive.storage import files as storage
from portal.archive.tiles.cache import SOURCES
from portal.archive.tiles.reading import plane_of, tile_read
from portal.core.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pydicom.dataset import Dataset

    from ml.imaging.slides.tiles import TileSource

VENDOR = "dicom"
"""OpenSlide's vendor of slides that came as DICOM."""
_OPEN_SERIES = 16  # data sets kept: some 100 kB and 16 bytes a frame
MAX_FRAME_GROUPS = 10_000  # listed in metadata: a level of 51,000 px a side in tiles of 512 px
_AWAY = "This slide cannot be read from the stored file."
_USUAL_RATIO = 16.0  # of tiles that are coded here: about 1.5 bits a pixel
_BRIEF = (
    *("SOPClassUID", "InstanceNumber", "Modality", "ImageType", "NumberOfFrames", "Rows"),
    *("Columns", "TotalPixelMatrixColumns", "TotalPixelMatrixRows", "BitsAllocated"),
)


class SlideObject(Protocol):
    """A DICOM object of a series, without data of the patient."""

    number: int
    syntax: str

    @property
    def frame_count(self) -> int:
        """Number of frames."""
        ...

    @property
    def coded_count(self) -> int:
        """Number of frames to encode for the whole object; 0 if all are stored."""
        ...

    def brief(self) -> Dataset:
        """Attributes returned by a search."""
        ...

    def data(self) -> Dataset:
        """Attributes of the object without pixels and per-frame groups."""
        ...

    def groups(self) -> Iterator[Dataset]:
        """Per-frame functional groups; none if they can be derived, or for too many frames."""
        ...

    def frame(self, index: int) -> bytes:
        """A frame as it is stored; ``NotFoundError`` where there is none."""
        ...

    def file(self, data: Dataset) -> Iterator[bytes]:
        """The object as a file with this data set, in pieces."""
        ...


class OwnObject:
    """An object of the file that the slide came as."""

    coded_count = 0

    def __init__(self, number: int, stored: StoredObject) -> None:
        self.number, self.syntax, self._stored = number, stored.syntax, stored
        self.frame_count = stored.frame_count

    def brief(self) -> Dataset:
        """Attributes as stored in the file."""
        from pydicom.dataset import Dataset

        dataset = Dataset()
        for word in _BRIEF:
            if word in self._stored.data:
                dataset[word] = self._stored.data[word]
        return dataset

    def data(self) -> Dataset:
        """A copy whose elements may be replaced."""
        from pydicom.dataset import Dataset

        dataset = Dataset()
        dataset.update(self._stored.data)
        for word in ("ExtendedOffsetTable", "ExtendedOffsetTableLengths"):
            if word in dataset:
                del dataset[word]
        dataset.pop(
            "PerFrameFunctionalGroupsSequence", None
        )  # of a class that is not served separately
        return dataset

    def groups(self) -> Iterator[Dataset]:
        """Read from the file on every call."""
        stored = self._stored
        is_grid = stored.data.get("DimensionOrganizationType") == "TILED_FULL"
        if is_grid or not stored.has_groups or self.frame_count > MAX_FRAME_GROUPS:
            return
        try:
            yield from stored.groups()
        except (OSError, MlError) as error:
            raise UnavailableError("This object cannot be read from the stored file.") from error

    def frame(self, index: int) -> bytes:
        """Its bytes."""
        if not 0 <= index < self.frame_count:
            raise _no_frame(index, self.frame_count)
        try:
            return self._stored.frame(index)
        except (OSError, MlError) as error:
            raise UnavailableError("This frame cannot be read from the stored file.") from error

    def file(self, data: Dataset) -> Iterator[bytes]:
        """Pieces of a DICOM file: these attributes, then the pixel data as stored."""
        try:
            self._stored.pixel_bytes()
        except (OSError, MlError) as error:
            raise UnavailableError("This object cannot be read from the stored file.") from error
        stored = self._stored.data
        for word in ("ExtendedOffsetTable", "ExtendedOffsetTableLengths"):
            if word in stored:
                data[word] = stored[word]
        first, after_frames = head_parts(data, self.syntax)
        groups = self._stored.group_pieces()
        return chain([first], groups, [after_frames], self._stored.pixel_pieces())


class LevelObject:
    """A level of a slide of another format; its frames are the level's tiles."""

    syntax = JPEG_BASELINE

    def __init__(self, canvas: Canvas, slide: SlideDescription, number: int) -> None:
        self.number, self._canvas, self._slide = number, canvas, slide
        self._level = number - 1
        self._columns = encoding.columns_of(slide.levels[self._level])
        self.frame_count = self._columns * encoding.rows_of(slide.levels[self._level])

    @property
    def coded_count(self) -> int:
        """Number of frames to encode for the whole object; 0 if all are stored."""
        return 0 if self._lengths is not None else self.frame_count

    def brief(self) -> Dataset:
        """Attributes from the database row; the file is not opened."""
        return encoding.brief_of(self._slide, self.number)

    def data(self) -> Dataset:
        """Attributes of the level; opens the file for its colours."""
        return encoding.level_of(self._slide, self.number, self._coding)

    def groups(self) -> Iterator[Dataset]:
        """Return no groups: the frames are a complete grid."""
        return iter(())

    def frame(self, index: int) -> bytes:
        """Stored tile, with the JPEG tables and the marker of its colour space."""
        if not 0 <= index < self.frame_count:
            raise _no_frame(index, self.frame_count)
        row, column = divmod(index, self._columns)
        plane = plane_of(self._canvas)
        try:
            source = SOURCES.get(plane.path, plane.display_range)
            coding = source.coding(self._level)
            if coding is not None and coding.is_baseline:
                return source.tile(self._level, column, row, with_profile=False).data
            return baseline(tile_read(plane, len(plane.grid) - 1 - self._level, column, row))
        except (OSError, MlError) as error:
            raise UnavailableError("This frame cannot be read from the stored file.") from error

    def file(self, data: Dataset) -> Iterator[bytes]:
        """Pieces of a DICOM file: these attributes, then each frame.

        It has an offset table if all frames are stored tiles, whose lengths are known.
        """
        lengths = self._lengths
        if lengths is not None:
            add_offsets(data, lengths)
        frames = (self.frame(index) for index in range(self.frame_count))
        return chain([head_of(data, self.syntax)], coded_pixels(frames))

    @property
    def _source(self) -> TileSource:
        try:
            return SOURCES.get(self._canvas.pixels_path, self._canvas.shown_range)
        except (OSError, MlError) as error:
            raise UnavailableError(_AWAY) from error

    @property
    def _lengths(self) -> npt.NDArray[np.int64] | None:
        source = self._source
        coding, lengths = source.coding(self._level), source.lengths(self._level)
        if coding is None or lengths is None or not coding.is_baseline or not lengths.all():
            return None
        return lengths

    @cached_property
    def _coding(self) -> Coding:
        level, source = self._slide.levels[self._level], self._source
        coding, lengths = source.coding(self._level), source.lengths(self._level)
        if coding is None or lengths is None or not coding.is_baseline:
            return Coding(is_rgb=False, ratio=_USUAL_RATIO, icc_profile=source.icc_profile)
        pixels = 3 * level.tile_width_px * level.tile_height_px * int((lengths > 0).sum())
        ratio = pixels / max(int(lengths.sum()), 1)
        return Coding(is_rgb=coding.is_rgb, ratio=ratio, icc_profile=source.icc_profile)


def objects_of(canvas: Canvas) -> list[SlideObject]:
    """The objects of a slide, the finest level first; none of a slide of unknown pixel size."""
    if canvas.slide.vendor == VENDOR:
        folder = storage.resolve(canvas.pixels_path).parent
        try:
            own_objects = _own_objects(str(folder), canvas.content_hash)
        except OSError as error:
            raise UnavailableError(_AWAY) from error
        if own_objects:
            return list(own_objects)
    if canvas.mpp_x is None or canvas.mpp_y is None:
        return []
    slide = _slide_of(canvas, (canvas.mpp_x, canvas.mpp_y))
    numbers = range(1, min(len(slide.levels), MAX_INSTANCES) + 1)
    return [LevelObject(canvas, slide, number) for number in numbers]


def object_count(canvas: Canvas) -> int:
    """Number of objects of a slide; 0 if its file is missing, so that a list does not fail.

    No file is read, but once for a slide that came as DICOM.
    """
    has_size = canvas.mpp_x is not None and canvas.mpp_y is not None
    if canvas.slide.vendor != VENDOR:
        return min(len(canvas.levels), MAX_INSTANCES) if has_size else 0
    count = own_count_known(canvas.content_hash, has_size=has_size)
    if count is None:
        try:
            count = len(objects_of(canvas))
        except UnavailableError:
            return 0
        with _COUNTS_LOCK:
            _COUNTS[canvas.content_hash, has_size] = count
    return count


def own_count_known(content_hash: str, *, has_size: bool) -> int | None:
    """Remembered ``object_count`` of a slide that came as DICOM; None if it was not counted yet.

    Args:
        has_size: The slide's pixel size is known.
    """
    with _COUNTS_LOCK:
        return _COUNTS.get((content_hash, has_size))


_COUNTS: LRUCache[tuple[str, bool], int] = LRUCache(100_000)  # of slides, some 400 bytes each
_COUNTS_LOCK = threading.Lock()


def object_uid(canvas: Canvas, instance: SlideObject) -> str:
    """The UID of an object: it follows from the canvas and the number."""
    return uid_of(instance_id(canvas.pk, instance.number))


def _slide_of(canvas: Canvas, mpp: tuple[float, float]) -> SlideDescription:
    return SlideDescription(
        slide_id=canvas.pk,
        levels=[Level(**level) for level in canvas.levels],
        mpp=mpp,
        vendor=canvas.slide.vendor,
        objective_power=canvas.slide.objective_power,
        made_at=canvas.created_at,
        stain=canvas.slide.stain,
    )


@lru_cache(maxsize=_OPEN_SERIES)
def _own_objects(folder: str, _content: str) -> tuple[OwnObject, ...]:
    """Objects in the folder of a slide that came as DICOM, without label and overview.

    An object that does not say that patients' names were removed is left out. ``OSError`` where one
    cannot be read: that is not remembered.
    """
    objects = []
    for path in sorted(Path(folder).iterdir()):
        if not path.is_file() or not is_dicom_slide(read_head(path)):
            continue
        try:
            stored = StoredObject(path)
        except BadInputError:
            continue
        if stored.is_deidentified() and stored.is_of_tissue():
            objects.append(stored)
    objects.sort(
        key=lambda stored_object: (-_width(stored_object), str(stored_object.data.SOPInstanceUID))
    )
    return tuple(
        OwnObject(number, stored_object)
        for number, stored_object in enumerate(objects[:MAX_INSTANCES], 1)
    )


def _width(stored: StoredObject) -> int:
    return int(stored.data.get("TotalPixelMatrixColumns") or stored.data.get("Columns") or 0)


def _no_frame(index: int, count: int) -> NotFoundError:
    return NotFoundError(f"There is no frame {index + 1}: this object has {count:,}.")

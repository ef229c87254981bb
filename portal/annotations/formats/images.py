"""Choice of a document's image for a canvas: by name, else by size; on a video by number."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from portal.annotations.formats.types import Plane
from portal.annotations.qupath import one_line
from portal.core.text import name_key

_LAST_NUMBER = re.compile(r"(\d{1,9})(?=(?:\.[A-Za-z]\w{0,7}){0,2}$)")
MAX_IMAGES = 1_000_000  # their names are held in memory: some 350 MB
_SHOWN = 60  # characters of a name in a message


@dataclass(frozen=True, slots=True)
class DocumentImage:
    """An image as a document describes it; only the key was checked.

    Attributes:
        key: what the shapes of the document call it.
        name: of its file, perhaps with folders; None if the document has none.
        width, height: None if the document has none.
    """

    key: Hashable
    name: object
    width: object
    height: object


@dataclass(frozen=True, slots=True)
class ImageChoice:
    """The images of a document that are this canvas.

    Attributes:
        frames: by key, the frame of a video; 0 on a still.
        unread: reason why an image is not of this canvas, by key.
        decided: by what, in a sentence for the result of the import.
    """

    frames: dict[Any, int] = field(default_factory=dict)
    unread: dict[Any, str] = field(default_factory=dict)
    decided: str = ""


def image_choose(images: Sequence[DocumentImage], plane: Plane) -> ImageChoice:
    """Choose the images of a document that are the canvas, with a reason for each other one.

    A still or slide is the image of its name, or the only one of its size. A video is the images
    that are numbered alike: where there are several such series, the one of its name.
    """
    choice = ImageChoice()
    numbered = images
    if plane.is_video:
        numbered = [image for image in images if _number(image) is not None]
        choice.unread.update(
            (image.key, f"the name of its image, {_display_name(image)}, contains no frame number")
            for image in images
            if _number(image) is None
        )
    chosen, decided = (_images_of_frames if plane.is_video else _images_of_still)(numbered, plane)
    keys = {image.key for image in chosen}
    for image in numbered:
        if image.key in keys:
            choice.frames[image.key] = (_number(image) or 0) if plane.is_video else 0
        else:
            choice.unread[image.key] = f"it belongs to another image: {_description(image)}"
    return replace(choice, decided=decided)


def name_is_of(name: object, plane: Plane) -> bool:
    """Return whether a file's name is that of the canvas, but for folders, suffixes and case."""
    last = _last_part(name)
    return name_key(last) == name_key(plane.name) or _stem(last) == _stem(plane.name)


def _images_of_still(
    images: Sequence[DocumentImage], plane: Plane
) -> tuple[list[DocumentImage], str]:
    fit = [image for image in images if _fits(image, plane)]
    matching = [image for image in images if name_is_of(image.name, plane)]
    exact = [
        image for image in matching if name_key(_last_part(image.name)) == name_key(plane.name)
    ]
    matching = exact or matching
    if matching:
        sized = [image for image in matching if image in fit]
        if len(sized) == 1:
            count = f", one of {len(images):,}," if len(images) > 1 else ""
            return sized, f"The image {_display_name(sized[0])}{count} was read, by its name."
        if sized:
            return (
                [],
                f"None was read: {len(sized)} images have the name {_display_name(sized[0])}.",
            )
        return [], f"None was read: the image {_display_name(matching[0])} has another size."
    if len(fit) == 1:
        return fit, (
            f"The image {_display_name(fit[0])} was read, by its size; "
            "its name is not that of the canvas."
        )
    if fit:
        return [], (
            f"None was read: {len(fit)} images have the size of this canvas, and none its name. "
            "Give the item the name of its image, and import again."
        )
    return [], "None was read: no image has the name and size of this canvas." if images else ""


def _images_of_frames(
    images: Sequence[DocumentImage], plane: Plane
) -> tuple[list[DocumentImage], str]:
    fit = [image for image in images if _fits(image, plane)]
    series: dict[tuple[str, ...], list[DocumentImage]] = {}
    for image in fit:
        series.setdefault(_series(image), []).append(image)
    title = _stem(plane.name)
    matching = [key for key in series if title in key]
    if len(series) > 1 and len(matching) != 1:
        series_names = ", ".join(
            _display_name(images_of_series[0]) for images_of_series in list(series.values())[:3]
        )
        return [], (
            f"None was read: images of {len(series)} videos ({series_names}), and not one has the "
            "name of this video. Give the item the name of its video, and import again."
        )
    chosen = (
        series[matching[0]]
        if matching
        else [image for images_of_series in series.values() for image in images_of_series]
    )
    if not chosen:
        return [], "None was read: no image has the size of this video." if images else ""
    unread_note = " Images of other videos were not read." if len(chosen) < len(images) else ""
    return chosen, (
        "Each image was put on the frame of this video that the number at the end of its name "
        f"says, counted from 0.{unread_note}"
    )


def _series(image: DocumentImage) -> tuple[str, ...]:
    """Folders and the part of the name before the number: alike for all frames of a video."""
    parts = re.split(r"[\\/]", str(image.name))
    before = _LAST_NUMBER.sub("", parts[-1]).rsplit(".", 1)[0] if parts else ""
    folders = [name_key(part) for part in parts[:-1] if part not in ("", ".")]
    return (*folders, *(part for part in [name_key(before.rstrip("_-. (#"))] if part))


def _number(image: DocumentImage) -> int | None:
    match = _LAST_NUMBER.search(str(image.name))
    return int(match[1]) if match else None


def _fits(image: DocumentImage, plane: Plane) -> bool:
    """Return whether an image has the canvas's size, or states none."""
    if image.width is None or image.height is None:
        return True
    return (image.width, image.height) == (plane.width_px, plane.height_px)


def _last_part(name: object) -> str:
    return re.split(r"[\\/]", str(name))[-1] if name is not None else ""


def _stem(name: str) -> str:
    key = name_key(name)
    return key.rsplit(".", 1)[0] if re.search(r".\.[^.\s]{1,8}$", key) else key


def _display_name(image: DocumentImage) -> str:
    return one_line(str(image.name if image.name is not None else image.key))[:_SHOWN]


def _description(image: DocumentImage) -> str:
    if image.width is None or image.height is None:
        return _display_name(image)
    return f"{_display_name(image)}, {image.width!s:.9} x {image.height!s:.9} pixels"

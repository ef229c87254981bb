"""UIDs that follow from UUIDs, and back: 2.25 and the number of the UUID (DICOM PS3.5, B.2)."""

from __future__ import annotations

import uuid

ROOT = "2.25."
MOST_INSTANCES = 255
"""Of a series: their ids differ from the series' own in the last byte."""
WHOLE_SLIDE = "1.2.840.10008.5.1.4.1.1.77.1.6"
"""VL Whole Slide Microscopy Image Storage."""
_MOST_DIGITS = 39  # of 2**128


def uid_of(one: uuid.UUID) -> str:
    """The UID of a UUID."""
    return f"{ROOT}{one.int}"


def uuid_of(uid: str) -> uuid.UUID | None:
    """The UUID behind a UID; None if it is of another root, or not in its one spelling."""
    digits = uid.removeprefix(ROOT)
    if digits == uid or len(digits) > _MOST_DIGITS or not (digits.isascii() and digits.isdecimal()):
        return None
    number = int(digits)
    return uuid.UUID(int=number) if number < 2**128 and str(number) == digits else None


def instance_id(series: uuid.UUID, number: int) -> uuid.UUID:
    """The id of an instance by its number in the series.

    Args:
        number: 1 to ``MOST_INSTANCES``; 0 is the series itself.
    """
    return uuid.UUID(int=series.int ^ number)


def instance_number(series: uuid.UUID, instance: uuid.UUID) -> int | None:
    """The number of an instance in a series; None if it is not of it."""
    number = series.int ^ instance.int
    return number if 0 < number <= MOST_INSTANCES else None


def series_of(instance: uuid.UUID) -> list[uuid.UUID]:
    """The series that an instance of this id could be of: at most one of them is there."""
    return [instance_id(instance, number) for number in range(1, MOST_INSTANCES + 1)]


def derived_uid(one: uuid.UUID, what: str) -> str:
    """The UID of something that has no UUID of its own: the same each time."""
    return uid_of(uuid.uuid5(one, what))

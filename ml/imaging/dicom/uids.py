"""Conversion between UIDs and UUIDs: 2.25 and the number of the UUID (DICOM PS3.5, B.2)."""

from __future__ import annotations

import uuid

ROOT = "2.25."
MAX_INSTANCES = 255
"""Largest number of instances in a series: their ids differ from the series' in the last byte."""
WHOLE_SLIDE = "1.2.840.10008.5.1.4.1.1.77.1.6"
"""VL Whole Slide Microscopy Image Storage."""
_MAX_DIGITS = 39  # of 2**128


def uid_of(value: uuid.UUID) -> str:
    """Convert a UUID to a UID."""
    return f"{ROOT}{value.int}"


def uuid_of(uid: str) -> uuid.UUID | None:
    """Convert a UID to its UUID; None if it has another root, or is not in canonical form."""
    digits = uid.removeprefix(ROOT)
    if digits == uid or len(digits) > _MAX_DIGITS or not (digits.isascii() and digits.isdecimal()):
        return None
    number = int(digits)
    return uuid.UUID(int=number) if number < 2**128 and str(number) == digits else None


def instance_id(series: uuid.UUID, number: int) -> uuid.UUID:
    """The id of an instance by its number in the series.

    Args:
        number: 1 to ``MAX_INSTANCES``; 0 is the series itself.
    """
    return uuid.UUID(int=series.int ^ number)


def instance_number(series: uuid.UUID, instance: uuid.UUID) -> int | None:
    """The number of an instance in a series; None if it is not of it."""
    number = series.int ^ instance.int
    return number if 0 < number <= MAX_INSTANCES else None


def series_of(instance: uuid.UUID) -> list[uuid.UUID]:
    """Ids of all series that an instance of this id may belong to."""
    return [instance_id(instance, number) for number in range(1, MAX_INSTANCES + 1)]


def derived_uid(base: uuid.UUID, name: str) -> str:
    """Derive a UID from a UUID and a name, reproducibly."""
    return uid_of(uuid.uuid5(base, name))

"""What a check of the portal found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line of the doctor.

    Attributes:
        part: what was looked at: ``database``.
        level: error: something does not work or is not safe; warning: it will not stay well.
        says: what was found, in a sentence.
        do: what to do about it; empty if all is well.
    """

    part: str
    level: Level
    says: str
    do: str = ""


def ok(part: str, says: str) -> DoctorFinding:
    """All is well."""
    return DoctorFinding(part, "ok", says)


def warning(part: str, says: str, do: str) -> DoctorFinding:
    """It will not stay well."""
    return DoctorFinding(part, "warning", says, do)


def error(part: str, says: str, do: str) -> DoctorFinding:
    """It does not work, or is not safe."""
    return DoctorFinding(part, "error", says, do)

"""Findings of a check of the portal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Result of one check.

    Attributes:
        part: Checked part: ``database``.
        level: ``error``: does not work or is not safe; ``warning``: will become a problem.
        message: Finding, as a sentence.
        remedy: What to do about it; empty if all is well.
    """

    part: str
    level: Level
    message: str
    remedy: str = ""


def ok(part: str, message: str) -> DoctorFinding:
    """Finding without a problem."""
    return DoctorFinding(part, "ok", message)


def warning(part: str, message: str, remedy: str) -> DoctorFinding:
    """Finding that will become a problem."""
    return DoctorFinding(part, "warning", message, remedy)


def error(part: str, message: str, remedy: str) -> DoctorFinding:
    """Finding that does not work, or is not safe."""
    return DoctorFinding(part, "error", message, remedy)

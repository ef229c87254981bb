"""Events of jobs."""

from __future__ import annotations

from enum import StrEnum


class JobEvent(StrEnum):
    """Names of the events of jobs."""

    ENDED = "job.ended"

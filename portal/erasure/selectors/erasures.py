"""Reads of erasures."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from portal.backups.repository import ErasedCases
from portal.core.errors import NotFoundError
from portal.erasure.models import Erasure, ErasureState
from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role


def erasure_list(user: User, *, lab: Lab | None = None) -> QuerySet[Erasure]:
    """Erasures of the labs that this person manages, newest first."""
    managed = labs_with_role(user, at_least=Role.MANAGER)
    rows = Erasure.objects.filter(lab__in=managed).select_related("lab", "requested_by")
    return rows.filter(lab=lab) if lab else rows


def erasure_get(user: User, erasure_id: uuid.UUID) -> Erasure:
    """Erasure of a lab of which the person is a member; callers check the role.

    Raises:
        NotFoundError: No lab of the person has it.
    """
    rows = Erasure.objects.visible_to(user).select_related("lab", "requested_by")
    erasure: Erasure | None = rows.filter(pk=erasure_id).first()
    if erasure is None:
        raise NotFoundError("There is no such erasure.")
    return erasure


def erasure_job(erasure: Erasure) -> Job | None:
    """Newest job of an erasure; None if a command ran it."""
    return job_latest_for(target_type="erasure", target_ids=[erasure.pk]).get(erasure.pk)


def erasures_completed() -> list[ErasedCases]:
    """Completed erasures of all labs, for the destinations of backups."""
    completed = Erasure.objects.filter(state=ErasureState.DONE).order_by("finished_at")
    return [
        {
            "erasure": str(erasure.pk),
            "cases": erasure.case_ids,
            "at": erasure.finished_at.isoformat() if erasure.finished_at else "",
        }
        for erasure in completed
    ]

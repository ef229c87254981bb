"""Reads of erasures, for the managers of the lab."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.jobs.selectors import job_latest_for
from portal.keeping.models import Erasure
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role


def erasure_list(user: User, *, lab: Lab | None = None) -> QuerySet[Erasure]:
    """Erasures of the labs that this person manages, newest first."""
    managed = labs_with_role(user, at_least=Role.MANAGER)
    rows = Erasure.objects.filter(lab__in=managed).select_related("lab", "requested_by")
    return rows.filter(lab=lab) if lab else rows


def erasure_get(user: User, erasure_id: uuid.UUID) -> Erasure:
    """One erasure of a lab of this person's; whether they may read it is another question.

    Raises:
        NotFoundError: no such erasure there.
    """
    rows = Erasure.objects.visible_to(user).select_related("lab", "requested_by")
    erasure: Erasure | None = rows.filter(pk=erasure_id).first()
    if erasure is None:
        raise NotFoundError("There is no such erasure.")
    return erasure


def erasure_job(erasure: Erasure) -> Job | None:
    """Its newest job; none if a command erased."""
    return job_latest_for(target_type="erasure", target_ids=[erasure.pk]).get(erasure.pk)

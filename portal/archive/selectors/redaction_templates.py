"""Reads of redaction templates and of the held files that they fit."""

from __future__ import annotations

import uuid

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from portal.archive.models import Evidence, RedactionTemplate, Upload, UploadState
from portal.archive.models.intake import SCOPE_FIELDS, FileScope
from portal.archive.rules import require_intake
from portal.archive.selectors.intake import quarantine_list
from portal.core.errors import NotFoundError
from portal.labs.models import Membership, Role, User


def redaction_template_list(*, user: User) -> QuerySet[RedactionTemplate]:
    """Templates of the labs that the person manages, with ``held_count``: files that wait."""
    managed = Membership.objects.of(user).filter(role=Role.MANAGER).values("lab_id")
    same = {name: OuterRef(name) for name in SCOPE_FIELDS}
    evidence = Evidence.objects.filter(
        lab_id=OuterRef("lab_id"),
        upload__state=UploadState.QUARANTINED,
        upload__case__isnull=False,
        upload__case__trash_entry=None,
        upload__is_part=False,
        upload__redaction=None,
        **same,
    )
    counted = evidence.order_by().values("lab_id").annotate(number=Count("pk")).values("number")
    templates: QuerySet[RedactionTemplate] = RedactionTemplate.objects.owned_by(user)
    return (
        templates.filter(lab_id__in=managed)
        .select_related("created_by")
        .annotate(held_count=Coalesce(Subquery(counted, output_field=IntegerField()), 0))
    )


def redaction_template_get(*, user: User, template_id: uuid.UUID) -> RedactionTemplate:
    """A template; ``NotFoundError``, ``ForbiddenError`` for members who do not manage its lab."""
    template: RedactionTemplate | None = (
        redaction_template_list(user=user).filter(pk=template_id).first()
    )
    if template is not None:
        return template
    hidden = RedactionTemplate.objects.owned_by(user).filter(pk=template_id).first()
    if hidden is not None:
        require_intake(user, hidden.lab_id)
    raise NotFoundError("No such template.")


def files_of_template(template: RedactionTemplate, *, user: User) -> QuerySet[Upload]:
    """Files in quarantine of the template's scope that have no boxes of their own."""
    same = {f"evidence__{name}": getattr(template, name) for name in SCOPE_FIELDS}
    return quarantine_list(user=user).filter(lab_id=template.lab_id, redaction=None, **same)


def scope_of(upload: Upload) -> FileScope | None:
    """Scope of a file in quarantine; None if it was not held back for its picture."""
    evidence: Evidence | None = getattr(upload, "evidence", None)
    return evidence.scope if evidence else None


def template_of(upload: Upload) -> RedactionTemplate | None:
    """The lab's template for the scope of a file in quarantine."""
    scope = scope_of(upload)
    if scope is None:
        return None
    same = {name: getattr(scope, name) for name in SCOPE_FIELDS}
    template: RedactionTemplate | None = RedactionTemplate.objects.filter(
        lab_id=upload.lab_id, **same
    ).first()
    return template

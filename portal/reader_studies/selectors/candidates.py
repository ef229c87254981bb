"""Images, users and labels by id, among those that the user may see."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db.models import QuerySet

from portal.annotations.models import Label
from portal.archive.models import Canvas, Case
from portal.archive.selectors.cases import case_search
from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Membership, Role, User


def canvases_named(
    user: User, *, canvases: Collection[uuid.UUID], cases: Collection[uuid.UUID] = ()
) -> list[Canvas]:
    """Canvases of these ids and of these cases, without duplicates; ``NotFoundError`` if one is
    missing."""
    canvas_ids, of_cases = set(canvases), set(cases)
    rows = Canvas.objects.owned_by(user).select_related("case").defer("levels")
    by_id = {row.pk: row for row in rows.filter(pk__in=canvas_ids)} if canvas_ids else {}
    if canvas_ids - by_id.keys():
        raise NotFoundError("No such canvas.")
    if of_cases:
        case_count = Case.objects.owned_by(user).filter(pk__in=of_cases).count()
        if case_count != len(of_cases):
            raise NotFoundError("No such case.")
        by_id |= {row.pk: row for row in rows.filter(case__in=of_cases)}
    return sorted(by_id.values(), key=lambda canvas: (canvas.case.accession, canvas.created_at))


def people_named(lab: Lab, ids: Collection[uuid.UUID]) -> list[User]:
    """Members of a lab; ``NotFoundError`` if one is not a member."""
    rows = Membership.objects.filter(lab=lab, user__in=set(ids), user__is_active=True)
    people = [row.user for row in rows.select_related("user").order_by("user__email")]
    if len(people) != len(set(ids)):
        raise NotFoundError("people: somebody is not a member of this lab.")
    return people


def labels_named(lab: Lab, ids: Collection[uuid.UUID]) -> list[Label]:
    """Labels of a lab; ``NotFoundError`` if it lacks one of them."""
    labels = list(Label.objects.filter(lab=lab, pk__in=set(ids)))
    if len(labels) != len(set(ids)):
        raise NotFoundError("labels: no such label in this lab.")
    return labels


def images_to_choose(
    user: User, lab: Lab, text: str = "", *, cases: QuerySet[Case] | None = None
) -> QuerySet[Canvas]:
    """Images of a lab, newest cases first.

    Args:
        text: Search text of the list of cases.
        cases: Only images of these cases.
    """
    rows = Canvas.objects.owned_by(user).filter(lab=lab).select_related("case").defer("levels")
    if text:
        rows = rows.filter(case__in=case_search(Case.objects.owned_by(user), text))
    if cases is not None:
        rows = rows.filter(case__in=cases.order_by().values("pk"))
    return rows.order_by("-case__created_at", "created_at", "id")


def members_who_draw(lab: Lab) -> QuerySet[Membership]:
    """Memberships as an annotator or more, service accounts and closed accounts included."""
    roles = [role for role in Role if role.rank >= Role.ANNOTATOR.rank]
    return Membership.objects.filter(lab=lab, role__in=roles)


def able_to_draw(lab: Lab) -> QuerySet[User]:
    """Users of a lab who may draw, by name."""
    able = members_who_draw(lab).filter(user__is_service=False)
    people = User.objects.filter(pk__in=able.values("user_id"), is_active=True)
    return people.order_by("full_name", "email")

"""Reads: labs, members and tokens a person may see."""

from __future__ import annotations

import uuid

from django.db.models import Case, IntegerField, QuerySet, Value, When

from portal.core.errors import ForbiddenError, InvalidInputError, NotFoundError
from portal.labs.models import ApiToken, Lab, Membership, Role, User


def memberships_of(user: User) -> QuerySet[Membership]:
    """The person's own memberships with their labs, by the lab's name."""
    return Membership.objects.filter(user=user).select_related("lab").order_by("lab__name", "id")


def labs_with_role(user: User, *, at_least: Role) -> QuerySet[Lab]:
    """The labs in which the person's role includes ``at_least``, by name."""
    roles = [role for role in Role if role.rank >= at_least.rank]
    return Lab.objects.filter(memberships__user=user, memberships__role__in=roles).order_by("name")


def lab_get(user: User, *, slug: str | None = None) -> Lab:
    """The lab of that slug, or the first of the person's labs by name.

    Raises:
        NotFoundError: no such lab among those the person is a member of.
    """
    labs = Lab.objects.visible_to(user).order_by("name", "id")
    lab = labs.filter(slug=slug).first() if slug else labs.first()
    if lab is None:
        raise NotFoundError("There is no such lab, or you are not a member of it.")
    return lab


def lab_chosen(user: User, lab_id: uuid.UUID | None, *, at_least: Role) -> Lab:
    """The lab that something new goes to: the one named, or the only one where the role allows it.

    Raises:
        NotFoundError: the lab named is none of theirs.
        ForbiddenError: none was named, and the person has the role in no lab.
        InvalidInputError: none was named, and they have it in several.
    """
    if lab_id is not None:
        lab: Lab | None = Lab.objects.visible_to(user).filter(pk=lab_id).first()
        if lab is None:
            raise NotFoundError("No such lab.")
        return lab
    labs = list(labs_with_role(user, at_least=at_least)[:2])
    if not labs:
        raise ForbiddenError(f"This needs the role {at_least.label.lower()} in a lab.")
    if len(labs) > 1:
        raise InvalidInputError("lab: name the lab; you may do this in more than one.")
    return labs[0]


def members_of(lab: Lab) -> QuerySet[Membership]:
    """Everybody in the lab, managers first, then by name. Call with a lab found visible."""
    rank = Case(
        *(When(role=role, then=Value(-role.rank)) for role in Role), output_field=IntegerField()
    )
    return (
        Membership.objects.filter(lab=lab)
        .select_related("user")
        .order_by(rank, "user__full_name", "user__email")
    )


def membership_get(user: User, *, membership_id: uuid.UUID) -> Membership:
    """A membership in one of the person's labs.

    Raises:
        NotFoundError: no such membership there.
    """
    membership = (
        Membership.objects.visible_to(user)
        .select_related("user", "lab")
        .filter(pk=membership_id)
        .first()
    )
    if membership is None:
        raise NotFoundError("There is no such member in your labs.")
    return membership


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """The person's own tokens, newest first, dead ones included."""
    return ApiToken.objects.visible_to(user).order_by("-created_at", "id")


def token_get(user: User, *, token_id: uuid.UUID) -> ApiToken:
    """One of the person's own tokens.

    Raises:
        NotFoundError: it does not exist or is somebody else's.
    """
    token = ApiToken.objects.visible_to(user).filter(pk=token_id).first()
    if token is None:
        raise NotFoundError("There is no such token among yours.")
    return token

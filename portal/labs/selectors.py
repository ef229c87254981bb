"""Reads: labs, members and tokens that a user may see."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Case, IntegerField, Prefetch, QuerySet, Value, When
from django.utils import timezone

from portal.core.errors import ForbiddenError, InvalidInputError, NotFoundError
from portal.labs.hashing import sha256_of
from portal.labs.models import (
    ApiToken,
    BrowserSession,
    Invitation,
    Lab,
    Membership,
    OneTimeLink,
    Role,
    User,
)
from portal.labs.session_life import SEEN


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """A session as shown to its user."""

    row: BrowserSession
    seen_at: datetime
    is_current: bool


def person_to_sign_in(email: str) -> User | None:
    """Active account with this address; service accounts never sign in."""
    return User.objects.filter(email=email, is_active=True, is_service=False).first()


def second_factor_owed(user: User) -> bool:
    """Return whether this installation requires a second factor of the user."""
    requirement = settings.TESSERA_REQUIRE_SECOND_FACTOR
    if requirement == "off":
        return False
    memberships = Membership.objects.of(user)
    return (
        memberships.filter(role=Role.MANAGER) if requirement == "managers" else memberships
    ).exists()


def second_factor_missing(user: User) -> bool:
    """Return whether a required second factor is missing; recovery codes do not count as one."""
    if settings.TESSERA_REQUIRE_SECOND_FACTOR == "off":
        return False
    authenticators = Authenticator.objects.filter(user_id=user.pk)
    has_one: bool = authenticators.exclude(type=Authenticator.Type.RECOVERY_CODES).exists()
    return not has_one and second_factor_owed(user)


def memberships_of(user: User) -> QuerySet[Membership]:
    """Memberships of the user with their labs, by the lab's name."""
    return Membership.objects.of(user).select_related("lab").order_by("lab__name", "id")


def labs_with_role(user: User, *, at_least: Role) -> QuerySet[Lab]:
    """Labs in which the user's role includes ``at_least``, by name."""
    roles = [role for role in Role if role.rank >= at_least.rank]
    memberships = Membership.objects.of(user).filter(role__in=roles)
    return Lab.objects.filter(pk__in=memberships.values("lab_id")).order_by("name")


def lab_current(user: User, *, chosen: str | None) -> Lab | None:
    """Chosen lab if the user is still a member of it; None: all of their labs."""
    if not chosen:
        return None
    lab: Lab | None = Lab.objects.visible_to(user).filter(slug=chosen).first()
    return lab


def lab_get(user: User, *, slug: str | None = None, chosen: str | None = None) -> Lab:
    """Lab of the slug, else the chosen lab, else the first of the user's labs by name.

    Raises:
        NotFoundError: the user is not a member of such a lab.
    """
    labs = Lab.objects.visible_to(user).order_by("name", "id")
    if slug:
        lab = labs.filter(slug=slug).first()
    else:
        lab = lab_current(user, chosen=chosen) or labs.first()
    if lab is None:
        raise NotFoundError("There is no such lab, or you are not a member of it.")
    return lab


def lab_of_id(user: User, lab_id: uuid.UUID | None) -> Lab | None:
    """Lab of the id; None for None.

    Raises:
        NotFoundError: the user is not a member of the lab.
    """
    return None if lab_id is None else lab_named(user, lab_id)


def lab_named(user: User, lab_id: uuid.UUID) -> Lab:
    """Lab of the id; ``NotFoundError`` if the user is not a member of it."""
    lab: Lab | None = Lab.objects.visible_to(user).filter(pk=lab_id).first()
    if lab is None:
        raise NotFoundError("No such lab.")
    return lab


def lab_chosen(user: User, lab_id: uuid.UUID | None, *, at_least: Role) -> Lab:
    """Lab that a new object goes to: the named one, or the only lab in which the role suffices.

    Raises:
        NotFoundError: the user is not a member of the named lab.
        ForbiddenError: no lab was named, and the user has the role in none.
        InvalidInputError: no lab was named, and the user has the role in several.
    """
    if (lab := lab_of_id(user, lab_id)) is not None:
        return lab
    labs = list(labs_with_role(user, at_least=at_least)[:2])
    if not labs:
        raise ForbiddenError(f"You need the role of {at_least.label.lower()} in a lab.")
    if len(labs) > 1:
        raise InvalidInputError("lab: name the lab, because you may do this in more than one.")
    return labs[0]


def members_of(lab: Lab) -> QuerySet[Membership]:
    """Members of the lab, managers first, then by name. Call with a visible lab."""
    rank = Case(
        *(When(role=role, then=Value(-role.rank)) for role in Role), output_field=IntegerField()
    )
    return (
        Membership.objects.filter(lab=lab, user__is_service=False)
        .select_related("user")
        .order_by(rank, "user__full_name", "user__email")
    )


def member_list(user: User) -> QuerySet[Membership]:
    """Members of all labs of the user, by lab and name, without service accounts."""
    return (
        Membership.objects.visible_to(user)
        .filter(user__is_service=False)
        .select_related("user", "lab")
        .order_by("lab__name", "user__full_name", "user__email", "id")
    )


def membership_get(user: User, *, membership_id: uuid.UUID) -> Membership:
    """Membership in one of the user's labs.

    Raises:
        NotFoundError: there is none.
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


def invitations_of(lab: Lab) -> QuerySet[Invitation]:
    """Open invitations of the lab, newest first, expired ones included. Call for its managers."""
    return (
        Invitation.objects.open()
        .filter(lab=lab)
        .select_related("invited_by")
        .order_by("-created_at", "id")
    )


def invitation_list(user: User) -> QuerySet[Invitation]:
    """Open invitations to the labs that the user manages, newest first, expired ones included."""
    managed = labs_with_role(user, at_least=Role.MANAGER)
    open_ones = Invitation.objects.open().filter(lab__in=managed)
    return open_ones.select_related("invited_by").order_by("-created_at", "id")


def invitation_get(user: User, *, invitation_id: uuid.UUID) -> Invitation:
    """Invitation to one of the user's labs.

    Raises:
        NotFoundError: there is none.
    """
    invitation = (
        Invitation.objects.visible_to(user).select_related("lab").filter(pk=invitation_id).first()
    )
    if invitation is None:
        raise NotFoundError("There is no such invitation to your labs.")
    return invitation


def invitation_by_secret(secret: str) -> Invitation | None:
    """Live invitation of a link; None if it was used, revoked or has expired."""
    invitation = (
        Invitation.objects.select_related("lab", "invited_by")
        .filter(sha256=sha256_of(secret))
        .first()
    )
    return invitation if invitation is not None and invitation.is_live else None


def invitations_for(user: User) -> QuerySet[Invitation]:
    """Live invitations of the user's address, oldest first; none before the address is proven."""
    invitations = Invitation.objects.open().filter(email=user.email, expires_at__gt=timezone.now())
    open_invitations = invitations if user.email_proven_at is not None else invitations.none()
    return open_invitations.select_related("lab", "invited_by").order_by("created_at", "id")


def link_by_secret(secret: str) -> OneTimeLink | None:
    """Live link of a secret, without using it up; None if there is none."""
    return (
        OneTimeLink.objects.select_related("user")
        .filter(sha256=sha256_of(secret), used_at=None, expires_at__gt=timezone.now())
        .first()
    )


def anybody_exists() -> bool:
    """Return whether the installation has any account."""
    return User.objects.exists()


def account_exists(email: str) -> bool:
    """Return whether an address has an account. Call only for the holder of a link to it."""
    return User.objects.filter(email=email).exists()


def service_accounts_of(lab: Lab) -> QuerySet[Membership]:
    """Service accounts of the lab with their tokens, by name. Call for its managers."""
    return _service_accounts(Lab.objects.filter(pk=lab.pk))


def service_account_list(user: User) -> QuerySet[Membership]:
    """Service accounts of all labs that the user manages, with their tokens, by lab and name."""
    managed = Membership.objects.of(user).filter(role=Role.MANAGER).values("lab_id")
    return _service_accounts(Lab.objects.filter(pk__in=managed))


def _service_accounts(labs: QuerySet[Lab]) -> QuerySet[Membership]:
    live = ApiToken.objects.filter(revoked_at=None).order_by("-created_at", "id")
    return (
        Membership.objects.filter(lab__in=labs, user__is_service=True)
        .select_related("user", "lab")
        .prefetch_related(Prefetch("user__api_tokens", queryset=live))
        .order_by("lab__name", "user__full_name", "id")
    )


def service_account_get(user: User, *, membership_id: uuid.UUID) -> Membership:
    """Service account of one of the user's labs.

    Raises:
        NotFoundError: there is none.
    """
    service_account = membership_get(user, membership_id=membership_id)
    if not service_account.user.is_service:
        raise NotFoundError("There is no such service account in your labs.")
    return service_account


def sessions_of(user: User, *, current: str | None) -> list[SessionSeen]:
    """Live sessions of the user, the present one first, then by last use."""
    rows = {row.session_key: row for row in BrowserSession.objects.filter(user=user)}
    live = Session.objects.filter(session_key__in=rows, expire_date__gt=timezone.now())
    sessions = []
    for session in live:
        row, data = rows[session.session_key], session.get_decoded()
        seen_at = datetime.fromtimestamp(data.get(SEEN, row.created_at.timestamp()), UTC)
        sessions.append(SessionSeen(row, seen_at, row.session_key == current))
    return sorted(
        sessions, key=lambda session: (not session.is_current, -session.seen_at.timestamp())
    )


def session_get(user: User, *, session_id: uuid.UUID) -> BrowserSession:
    """Session of the user.

    Raises:
        NotFoundError: it has ended or belongs to another user.
    """
    session = BrowserSession.objects.filter(user=user, pk=session_id).first()
    if session is None:
        raise NotFoundError("You have no such session.")
    return session


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Tokens of the user, newest first, revoked and expired ones included."""
    return ApiToken.objects.visible_to(user).select_related("lab").order_by("-created_at", "id")


def token_get(user: User, *, token_id: uuid.UUID) -> ApiToken:
    """Token of the user.

    Raises:
        NotFoundError: it does not exist or belongs to another user.
    """
    token = ApiToken.objects.visible_to(user).filter(pk=token_id).first()
    if token is None:
        raise NotFoundError("You have no such token.")
    return token

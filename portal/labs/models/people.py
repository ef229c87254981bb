"""People, labs (the tenants) and memberships."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self, TypeVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db import models

from portal.core.database.names import NameField
from portal.core.models import BaseModel
from portal.core.registry import Registry

_Model = TypeVar("_Model", bound=models.Model)


class UserManager(BaseUserManager["User"]):
    """Manager of users, identified by their e-mail address."""

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Create a user; the address is stored in lower case."""
        user = self.model(email=email.strip().lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Create a superuser. Required by Django's command; Tessera has no page for superusers."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractUser):
    """A user. Memberships determine what they may see."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    username = None  # type: ignore[assignment]
    email = models.EmailField("e-mail", unique=True)
    full_name = NameField(max_length=120, blank=True)
    email_proven_at = models.DateTimeField(null=True, blank=True)
    """Time of the first proof that the user owns the address, as by a mailed link."""
    is_service = models.BooleanField(default=False)
    """True for a service account: tokens only, no password, mailbox or sign-in."""
    was_reclaimed: bool = False
    """True if this request proved the address for the first time and ended earlier access."""
    only_lab_id: uuid.UUID | None = None
    """Lab of a token for one lab: in this request the user is a member of no other."""

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.full_name or self.email


class LabQuerySet(models.QuerySet["Lab"]):
    """Labs; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Labs that the user is an active member of."""
        return self.filter(pk__in=Membership.objects.reached_by(user).values("lab_id"))


class Lab(BaseModel):
    """A tenant. All data belongs to one lab, and other labs see only what is shared with them."""

    name = NameField(max_length=120)
    slug = models.SlugField(unique=True)
    objects = LabQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """Role of a member; each role includes the previous ones."""

    VIEWER = "viewer", "Viewer"
    ANNOTATOR = "annotator", "Annotator"
    REVIEWER = "reviewer", "Reviewer"
    MANAGER = "manager", "Lab manager"

    @property
    def rank(self) -> int:
        """Position from 0 (viewer) to 3 (manager)."""
        return list(Role).index(self)


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Memberships; begin every query with ``visible_to`` or ``of``."""

    def of(self, user: User) -> Self:
        """The user's memberships, limited by the request's token. All rights derive from these."""
        memberships = self.filter(user=user)
        return (
            memberships if user.only_lab_id is None else memberships.filter(lab_id=user.only_lab_id)
        )

    def reached_by(self, user: User | AnonymousUser) -> Self:
        """Memberships of a user as by ``of``; none for anonymous and inactive users."""
        return self.of(user) if user.is_authenticated and user.is_active else self.none()

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All memberships of the labs that the user is an active member of."""
        return self.filter(lab_id__in=Membership.objects.reached_by(user).values("lab_id"))


class Membership(BaseModel):
    """A person's role in a lab."""

    edited = ("role",)

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role.choices, default=Role.VIEWER)
    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["user", "lab"], name="membership_user_lab_unique"),
        )


Hides = Callable[["User"], models.Q]
HIDDEN_ROWS: Registry[type[models.Model], Hides] = Registry()
"""Rows of a model that higher apps hide from users, as a condition with a subquery (no extra
query). ``visible_to`` and ``owned_by`` apply it, so no list, count, file or search can omit it."""


def hidden_q(model: type[models.Model], user: User) -> models.Q | None:
    """Condition of the rows hidden from a user; None if no app hides rows of the model."""
    conditions = [hides(user) for hides in HIDDEN_ROWS.all(model)]
    return reduce(or_, conditions) if conditions else None


class LabOwnedQuerySet(models.QuerySet[_Model]):
    """Rows of many labs; begin every query with ``visible_to`` or ``owned_by``."""

    def hidden_from(self, user: User) -> Self:
        """Rows of the user's labs that are hidden from them, see ``HIDDEN_ROWS``.

        For reads without ``visible_to`` that must mask them: an index file.
        """
        hidden = hidden_q(self.model, user)
        return self.none() if hidden is None else self.filter(hidden)

    def not_hidden_from(self, user: User) -> Self:
        """Rows that are not hidden.

        ``visible_to`` and ``owned_by`` leave out hidden rows already.
        """
        hidden = hidden_q(self.model, user)
        return self if hidden is None else self.exclude(hidden)

    def owned_by(self, user: User | AnonymousUser) -> Self:
        """Rows of the labs that the user is an active member of, as in lists and searches."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        owned = self.filter(lab_id__in=Membership.objects.of(user).values("lab_id"))
        return owned.not_hidden_from(user)

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Rows of ``owned_by``, and rows that other labs share with the user's labs.

        Visibility does not imply write access, which requires a role in the row's lab.
        """
        if not user.is_authenticated or not user.is_active:
            return self.none()
        owned = models.Q(lab_id__in=Membership.objects.of(user).values("lab_id"))
        shared: models.Q | None = getattr(self.model, "shared_with", lambda _: None)(user)
        return self.filter(owned if shared is None else owned | shared).not_hidden_from(user)


class WithoutTrashedManager(models.Manager[_Model]):
    """Rows that the model's ``without_trashed`` selects; ``all_objects`` has all rows."""

    def get_queryset(self) -> models.QuerySet[_Model]:
        """Rows that are not hidden."""
        row_filter = getattr(self.model, "without_trashed", None)
        rows = super().get_queryset()
        return rows if row_filter is None else row_filter(rows)


LabOwnedManager = WithoutTrashedManager.from_queryset(LabOwnedQuerySet)


class LabOwned(BaseModel):
    """A row that belongs to one lab.

    ``objects`` and relations to many only have the rows that ``without_trashed`` selects: items
    in the trash are only found through ``all_objects``.
    """

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="+")
    objects = LabOwnedManager()
    all_objects = LabOwnedQuerySet.as_manager()

    class Meta:
        abstract = True

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows that are not hidden; overridden by models that can be in the trash."""
        return rows

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Condition of other labs' rows that the user may read; overridden by models that can be
        shared."""
        return None

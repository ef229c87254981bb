"""People, labs (the tenants) and memberships."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db import models

from portal.core.database.names import NameField
from portal.core.models import BaseModel

_Model = TypeVar("_Model", bound=models.Model)


class UserManager(BaseUserManager["User"]):
    """Users are known by their e-mail address."""

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Create a person; the address is stored in lower case."""
        user = self.model(email=email.strip().lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Needed by Django's command; Tessera has no page for superusers."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractUser):
    """A person. What they may see follows from their memberships alone."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    username = None  # type: ignore[assignment]
    email = models.EmailField("e-mail", unique=True)
    full_name = NameField(max_length=120, blank=True)
    email_proven_at = models.DateTimeField(null=True, blank=True)
    """When somebody first proved to own the address, as by a mailed link; None: never."""
    is_service = models.BooleanField(default=False)
    """A program of a lab: it has tokens, and no password, no mailbox and no sign-in."""
    was_reclaimed: bool = False
    """Set where this request proved the address for the first time and ended earlier access."""
    only_lab_id: uuid.UUID | None = None
    """Set by a token for one lab: in this request the person is a member of no other."""

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.full_name or self.email


class LabQuerySet(models.QuerySet["Lab"]):
    """Labs; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """The labs this person is an active member of."""
        return self.filter(pk__in=Membership.objects.reached_by(user).values("lab_id"))


class Lab(BaseModel):
    """A tenant. Everything belongs to one lab; nothing crosses labs unless shared by name."""

    name = NameField(max_length=120)
    slug = models.SlugField(unique=True)
    objects = LabQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What a member may do; each role includes those before it."""

    VIEWER = "viewer", "Viewer"
    ANNOTATOR = "annotator", "Annotator"
    REVIEWER = "reviewer", "Reviewer"
    MANAGER = "manager", "Lab manager"

    @property
    def rank(self) -> int:
        """0 for a viewer, 3 for a manager."""
        return list(Role).index(self)


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Memberships; begin every query with ``visible_to`` or ``of``."""

    def of(self, user: User) -> Self:
        """The person's own, as far as the request's token reaches. Rights come from these alone."""
        mine = self.filter(user=user)
        return mine if user.only_lab_id is None else mine.filter(lab_id=user.only_lab_id)

    def reached_by(self, user: User | AnonymousUser) -> Self:
        """As ``of``; none for people who are not signed in or no longer active."""
        return self.of(user) if user.is_authenticated and user.is_active else self.none()

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Everybody's memberships in the labs this person is an active member of."""
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
_HIDING: dict[str, Hides] = {}


def hide_register(model: type[models.Model], hides: Hides) -> None:
    """Let a higher app hide rows of a model from people who could see them otherwise.

    Call from ``AppConfig.ready``. Every read that begins with ``visible_to`` or ``owned_by`` goes
    by it, so that no list, count, file or search can forget it.

    Args:
        hides: the rows that a person must not see, as a condition; by a subquery, so that it
            costs no query of its own.
    """
    _HIDING[model._meta.label_lower] = hides


def hidden_q(model: type[models.Model], user: User) -> models.Q | None:
    """What is hidden from a person of a model's rows; None if nothing ever is."""
    hides = _HIDING.get(model._meta.label_lower)
    return hides(user) if hides else None


class LabOwnedQuerySet(models.QuerySet[_Model]):
    """Rows of many labs; begin every query with ``visible_to`` or ``owned_by``."""

    def hidden_from(self, user: User) -> Self:
        """Rows of the person's labs that are kept from them for now, see ``hide_register``.

        For what is read without ``visible_to`` and has to be masked: an index file.
        """
        hidden = hidden_q(self.model, user)
        return self.none() if hidden is None else self.filter(hidden)

    def not_hidden_from(self, user: User) -> Self:
        """The others. ``visible_to`` and ``owned_by`` leave the hidden ones out already."""
        hidden = hidden_q(self.model, user)
        return self if hidden is None else self.exclude(hidden)

    def owned_by(self, user: User | AnonymousUser) -> Self:
        """The rows of the labs this person is an active member of: what lists and searches show."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        mine = self.filter(lab_id__in=Membership.objects.of(user).values("lab_id"))
        return mine.not_hidden_from(user)

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Those of ``owned_by``, and what other labs share with one of theirs. Seeing a row never
        means that one may write it: that takes a role in its lab.
        """
        if not user.is_authenticated or not user.is_active:
            return self.none()
        mine = models.Q(lab_id__in=Membership.objects.of(user).values("lab_id"))
        theirs: models.Q | None = getattr(self.model, "shared_with", lambda _: None)(user)
        return self.filter(mine if theirs is None else mine | theirs).not_hidden_from(user)


class ShownManager(models.Manager[_Model]):
    """The rows that the model's ``shown`` leaves; a plain manager beside it has all."""

    def get_queryset(self) -> models.QuerySet[_Model]:
        """All of them, except for what is hidden."""
        shown = getattr(self.model, "shown", None)
        rows = super().get_queryset()
        return rows if shown is None else shown(rows)


LabOwnedManager = ShownManager.from_queryset(LabOwnedQuerySet)


class LabOwned(BaseModel):
    """A row that belongs to one lab.

    ``objects`` has the rows that ``shown`` leaves, and so have relations to many: what lies in the
    bin is in no query that does not ask for ``everything``.
    """

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="+")
    objects = LabOwnedManager()
    everything = LabOwnedQuerySet.as_manager()

    class Meta:
        abstract = True

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """The rows that are not hidden; a model that can be in the bin says which."""
        return rows

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Rows of other labs that this person may read; a model that can be shared says which."""
        return None

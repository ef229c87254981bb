"""People, labs (the tenants), memberships and API tokens."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Self, TypeVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db import models
from django.utils import timezone

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
    full_name = models.CharField(max_length=120, blank=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.full_name or self.email


class LabQuerySet(models.QuerySet["Lab"]):
    """Labs; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """The labs this person is an active member of."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return self.filter(memberships__user=user)


class Lab(BaseModel):
    """A tenant. Everything belongs to one lab; nothing crosses labs."""

    name = models.CharField(max_length=120)
    slug = models.SlugField(unique=True)
    objects = LabQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What a member may do; each includes what stands before it."""

    VIEWER = "viewer", "Viewer"
    ANNOTATOR = "annotator", "Annotator"
    REVIEWER = "reviewer", "Reviewer"
    MANAGER = "manager", "Lab manager"

    @property
    def rank(self) -> int:
        """0 for a viewer, 3 for a manager."""
        return list(Role).index(self)


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Memberships; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Everybody's memberships in the labs this person is an active member of."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return self.filter(lab_id__in=Membership.objects.filter(user=user).values("lab_id"))


class Membership(BaseModel):
    """A person's role in a lab."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role.choices, default=Role.VIEWER)
    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["user", "lab"], name="membership_user_lab_unique"),
        )


class LabOwnedQuerySet(models.QuerySet[_Model]):
    """Rows of many labs; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """The rows of the labs this person is an active member of."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return self.filter(lab_id__in=Membership.objects.filter(user=user).values("lab_id"))


class LabOwned(BaseModel):
    """A row that belongs to one lab."""

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="+")
    objects = LabOwnedQuerySet.as_manager()

    class Meta:
        abstract = True


class TokenScope(models.TextChoices):
    """What a token may be used for; ``write`` includes ``read``."""

    READ = "read", "Read"
    WRITE = "write", "Read and write"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Tokens; begin every query with ``visible_to``."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """One's own; not even a lab manager sees another person's tokens."""
        return self.filter(user=user) if user.is_authenticated else self.none()


class ApiToken(BaseModel):
    """A program's key to its owner's view of the labs.

    Only the first characters (to recognise it) and a SHA-256 of the whole are kept. 256 random
    bits need no slow hash.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16)
    sha256 = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=8, choices=TokenScope.choices, default=TokenScope.READ)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    objects = ApiTokenQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_live(self) -> bool:
        """Neither expired nor revoked."""
        return self.revoked_at is None and self.expires_at > timezone.now()

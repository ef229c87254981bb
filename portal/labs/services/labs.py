"""Writes: labs."""

from __future__ import annotations

from django.db import transaction
from django.utils.text import slugify

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import Lab, Role, User
from portal.labs.services.members import member_add


@transaction.atomic
def lab_create(name: str, *, slug: str = "", manager: User | None = None) -> Lab:
    """Create a lab and, if given, add its first manager. Emits ``lab.created``.

    Raises:
        InvalidInputError: the name is empty.
        ConflictError: the slug is taken.
    """
    name, slug = name.strip(), slug or slugify(name)
    if not name or not slug:
        raise InvalidInputError("A lab needs a name with at least one letter or digit.")
    if Lab.objects.filter(slug=slug).exists():
        raise ConflictError(
            f"There is already a lab with the short name {slug!r}.", code="lab-exists"
        )
    lab = Lab.objects.create(name=name, slug=slug)
    event_emit("lab.created", lab_id=lab.id, payload={"lab": str(lab.id), "name": name})
    if manager is not None:
        member_add(lab, user=manager, role=Role.MANAGER)
    return lab

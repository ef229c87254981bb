"""Labs."""

from __future__ import annotations

import pytest

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.models import Event
from portal.labs.models import Membership, Role, User
from portal.labs.services import labs as services

pytestmark = pytest.mark.django_db


def test_a_lab_gets_a_slug_its_manager_and_an_event(viewer: User) -> None:
    lab = services.lab_create("East Wing 2", manager=viewer)
    assert lab.slug == "east-wing-2"
    assert Membership.objects.get(lab=lab).role == Role.MANAGER
    assert Event.objects.filter(name="lab.created", lab_id=lab.id).count() == 1


def test_a_second_lab_of_the_same_slug_is_refused() -> None:
    services.lab_create("East")
    with pytest.raises(ConflictError, match="'east'"):
        services.lab_create("East")


@pytest.mark.parametrize("name", ["", "   ", "!!!"])
def test_a_lab_without_a_usable_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        services.lab_create(name)

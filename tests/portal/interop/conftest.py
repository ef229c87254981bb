"""A lab with one of everything, and who may see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.services.tokens import token_create
from tests import world
from tests.live_servers import one_at_a_time_server


@dataclass
class Lab1:
    """The lab, its manager, and what it holds."""

    lab: Lab
    manager: User
    world: world.World
    bearer: str

    def client(self) -> Client:
        """HTTP client with the manager's token."""
        return Client(headers={"Authorization": f"Bearer {self.bearer}"})


@pytest.fixture(scope="session")
def live_server() -> Iterator[Any]:
    """pytest-django's, with requests one at a time."""
    yield from one_at_a_time_server()


@pytest.fixture(scope="module")
def built(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab1]:
    """Built once a module: it decodes a slide and a video."""
    folder: Path = tmp_path_factory.mktemp("interop")
    with django_db_blocker.unblock(), world.rolled_back(folder):
        lab = Lab.objects.create(name="Interop", slug="interop")
        manager = User.objects.create_user("manager@interop.example", "correct horse battery")
        Membership.objects.create(user=manager, lab=lab, role=Role.MANAGER)
        made = world.build(lab, manager, folder)
        _, secret = token_create(
            manager, name="viewer", scope=TokenScope.WRITE, expires_in=timedelta(days=1)
        )
        yield Lab1(lab, manager, made, secret)


@pytest.fixture
def held(built: Lab1, db: None) -> Lab1:
    """The same, with what the test writes rolled back."""
    return built

"""Fixtures of every test: labs with people of each role, clients, storage, development data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django.test import Client
    from rest_framework.test import APIClient

    from portal.labs.models import Lab, User


@pytest.fixture(scope="session")
def tessera_data() -> Path:
    """The folder of development data; skips where ``TESSERA_DATA`` is not set."""
    folder = os.environ.get("TESSERA_DATA")
    if not folder:
        pytest.skip("TESSERA_DATA is not set: the development data is not here")
    return Path(folder)


@pytest.fixture
def storage(settings: Any, tmp_path: Path) -> Path:
    """A storage root of this test's own."""
    settings.TESSERA_STORAGE = tmp_path / "storage"
    settings.TESSERA_STORAGE.mkdir()
    return settings.TESSERA_STORAGE


def _lab(slug: str) -> Lab:
    from portal.labs.models import Lab

    return Lab.objects.create(name=slug.title(), slug=slug)


def _member(lab: Lab, role: str) -> User:
    from portal.labs.models import Membership, User

    user = User.objects.create_user(f"{role}@{lab.slug}.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=role)
    return user


@pytest.fixture
def lab(db: None) -> Lab:
    """The lab most tests play in."""
    return _lab("north")


@pytest.fixture
def other_lab(db: None) -> Lab:
    """A lab that must see nothing of ``lab``."""
    return _lab("south")


@pytest.fixture
def viewer(lab: Lab) -> User:
    """May look."""
    return _member(lab, "viewer")


@pytest.fixture
def annotator(lab: Lab) -> User:
    """May draw and upload."""
    return _member(lab, "annotator")


@pytest.fixture
def reviewer(lab: Lab) -> User:
    """May accept and reject."""
    return _member(lab, "reviewer")


@pytest.fixture
def manager(lab: Lab) -> User:
    """May manage people and labels."""
    return _member(lab, "manager")


@pytest.fixture
def stranger(other_lab: Lab) -> User:
    """A manager of the other lab."""
    return _member(other_lab, "manager")


@pytest.fixture
def page(client: Client, annotator: User) -> Client:
    """A browser session of the annotator (Django's test client)."""
    client.force_login(annotator)
    return client


@pytest.fixture
def api(annotator: User) -> APIClient:
    """The API as the annotator, with a session; see also ``api_as``."""
    return _api_client(annotator)


@pytest.fixture
def api_as() -> Any:
    """``api_as(user)``: an API client of that user."""
    return _api_client


def _api_client(user: User) -> APIClient:
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_authenticate(user)
    return client

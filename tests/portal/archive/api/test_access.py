"""Access to the archive over REST."""

from __future__ import annotations

import uuid

import pytest
from rest_framework.test import APIClient

from portal.labs.models import Lab

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("kind", ["cases", "slides", "videos", "canvases"])
def test_unknown_and_malformed_ids_are_not_found(api: APIClient, kind: str, lab: Lab) -> None:
    for name in (uuid.uuid4(), "1", "x" * 36, "-" * 36):
        assert api.get(f"/api/v1/{kind}/{name}/").status_code == 404

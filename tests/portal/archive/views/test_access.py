"""Access to the pages of the archive."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.archive.models import Slide
from portal.labs.models import User
from tests.portal.archive.support import text_of

pytestmark = pytest.mark.django_db


def test_a_viewer_gets_no_forms(client: Client, viewer: User, still: Slide) -> None:
    client.force_login(viewer)
    body = text_of(client.get(f"/cases/{still.case_id}/"))
    assert "Upload" not in body
    assert "Delete" not in body

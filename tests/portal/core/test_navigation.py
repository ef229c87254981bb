"""Main navigation: the section of each page."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from portal.labs.models import User

_CURRENT = re.compile(r'class="bar__link"[^>]*aria-current="true">(\w+)')


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "sections"),
    [
        ("/cases/", ["Cases"]),
        ("/cases/new/", ["Cases"]),
        ("/queries/", ["Search"]),
        ("/reports/", ["Search"]),
        ("/browse/", ["Search"]),
        ("/mosaics/", ["Mosaics"]),
        ("/work/", ["Work"]),
        ("/review/", ["Work"]),
        ("/studies/", ["Work"]),
        ("/lab/", ["Lab"]),
        ("/lab/labels/", ["Lab"]),
        ("/lab/intake/", ["Lab"]),
        ("/trash/", ["Lab"]),
        ("/trash/regions/", ["Lab"]),
        ("/jobs/", []),
        ("/account/tokens/", []),
        ("/inbox/", []),
    ],
)
def test_each_page_marks_its_section(
    client: Client, manager: User, path: str, sections: list[str]
) -> None:
    client.force_login(manager)
    text = client.get(path).content.decode()
    assert _CURRENT.findall(text) == sections


@pytest.mark.django_db
def test_work_offers_assigned_images_to_managers_only(
    client: Client, manager: User, annotator: User
) -> None:
    for user, is_offered in ((manager, True), (annotator, False)):
        client.force_login(user)
        for path in ("/work/", "/review/", "/studies/"):
            assert ("/work/lab/" in client.get(path).content.decode()) == is_offered

"""Inventory of cases, with a constant number of queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.archive.models import Asset, Case, Slide, Upload
from portal.archive.services.cases import case_create
from portal.erasure.services.inventory import inventory_of
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db


def _slide(case: Case, number: int) -> Asset:
    asset, _ = Asset.objects.get_or_create(lab=case.lab, sha256=f"{number:064}", size_bytes=number)
    Slide.objects.create(lab=case.lab, case=case, asset=asset, name=f"slide {number}")
    return asset


def test_the_number_of_queries_does_not_grow_with_the_originals(
    lab: Lab, manager: User, storage: Path
) -> None:
    case = case_create(lab=lab, user=manager, accession="S-1")
    requests = []
    for slides in (range(1), range(1, 7)):
        for number in slides:
            _slide(case, number)
        with CaptureQueriesContext(connection) as queries:
            inventory_of(lab.pk, [case.pk])
        requests.append(len(queries))
    assert requests[0] == requests[1]


def test_originals_of_a_case_that_stays_are_shared(lab: Lab, manager: User, storage: Path) -> None:
    case, other = (case_create(lab=lab, user=manager, accession=name) for name in ("S-1", "S-2"))
    for number in range(3):
        asset = _slide(case, number)
        Upload.objects.create(lab=lab, case=case, asset=asset, filename="a", size_bytes=number)
    _slide(other, 1)
    asset = Asset.objects.get(size_bytes=2)
    Upload.objects.create(lab=lab, case=other, asset=asset, filename="a", size_bytes=2)
    originals = inventory_of(lab.pk, [case.pk]).originals
    assert {item.size_bytes: item.is_shared for item in originals} == {0: False, 1: True, 2: True}
    assert not any(
        original.is_shared for original in inventory_of(lab.pk, [case.pk, other.pk]).originals
    )

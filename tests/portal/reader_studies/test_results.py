"""Results of a study, computed and out of the cache that production uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from portal.annotations.models import Label
from portal.archive.models import Canvas
from portal.core import environment
from portal.core.caches import FallbackCache
from portal.labs.models import User
from portal.reader_studies.models import Study
from portal.reader_studies.selectors import results
from portal.reader_studies.selectors.results import image_result, image_results
from portal.reader_studies.services.assignments import assignment_submit
from tests.portal.reader_studies.conftest import draw, reading_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def read(study: Study, canvas: Canvas, annotator: User, second: User, label: Label) -> Study:
    """Handed in by both, who agree in part; one region of the second has no label."""
    for k in range(3):
        draw(canvas, annotator, 100 * k, 0, 100 * k + 60, 60, label=label)
        draw(canvas, second, 100 * k, 0, 100 * k + 60, 60 - 16 * k, label=label if k else None)
    for person in (annotator, second):
        assignment_submit(assignment=reading_of(study, person), user=person)
    return study


@pytest.fixture
def shared_cache(settings: Any, tmp_path: Path) -> FallbackCache:
    """Cache of production without Redis."""
    settings.CACHES = {"default": environment.cache("filesystem://", folder=tmp_path / "cache")}
    FallbackCache._away_until.clear()
    return FallbackCache(str(tmp_path / "cache"), {"KEY_PREFIX": "tessera-cache"})


def test_cached_results_equal_computed_ones(
    read: Study, canvas: Canvas, shared_cache: FallbackCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = image_result(read, canvas)
    assert len(computed.findings) == 4 and computed.pairs
    monkeypatch.delattr(results, "pair_agreement")
    assert image_result(read, canvas) == computed
    assert image_results(read) == [computed]
    assert type(cache._connections["default"]) is FallbackCache  # type: ignore[attr-defined]


def test_pages_and_rest_answer_the_same_from_the_cache(
    read: Study,
    canvas: Canvas,
    reviewer: User,
    client: Client,
    shared_cache: FallbackCache,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.force_login(reviewer)
    api, pages = f"/api/v1/studies/{read.pk}", f"/studies/{read.pk}"
    paths = [
        f"{api}/agreement/",
        f"{api}/findings/?canvas={canvas.pk}",
        f"{api}/agreement.csv",
        f"{pages}/",
        f"{pages}/findings/?canvas={canvas.pk}",
    ]
    first: dict[str, bytes] = {}
    for path in paths:
        shared_cache.clear()
        answer = client.get(path)
        assert answer.status_code == 200, path
        first[path] = answer.getvalue()
    monkeypatch.delattr(results, "pair_agreement")
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        if path.startswith("/api"):
            assert answer.getvalue() == first[path]
    body = {"canvas": str(canvas.pk), "choice": "agreed"}
    assert client.post(f"{pages}/decide/", body).status_code == 302
    assert read.decisions.get().roi.area_px == 3600

"""Objects of another lab look like missing ones: same response, same number of queries."""

from __future__ import annotations

import json
import re
import uuid
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, resolve

from portal.labs.models import Role
from tests.portal.embedded_rois import square
from tests.portal.search.isolation.conftest import signed_in

_PICTURE = {"source": "picture", "picture": "AAAA", "kind": "histology", "mpp": 1}
ADDRESSES = (
    ("get", "/rois/{roi}/similar/"),
    ("get", "/rois/{roi}/thumbnail.jpg"),
    ("get", "/queries/{query}/"),
    ("get", "/queries/{query}/picture.jpg"),
    ("post", "/queries/{query}/mark/"),
    ("post", "/queries/{query}/remove/"),
    ("post", "/queries/{query}/embed/"),
    ("post", "/queries/{query}/explanation/{hit}/"),
    ("post", "/rois/{roi}/judge/"),
    ("post", "/rois/{roi}/embed/"),
    ("post", "/api/v1/rois/{roi}/judgements/"),
    ("delete", "/api/v1/rois/{roi}/judgements/{hit}/"),
    ("get", "/api/v1/rois/{roi}/similar-regions/"),
    ("get", "/rois/{roi}/similar/explanation/{hit}/"),
    ("get", "/rois/{own}/similar/explanation/{hit}/"),
    ("post", "/rois/{own}/similar/explanation/{hit}/"),
    ("get", "/queries/{query}/explanation/{hit}/"),
    ("get", "/api/v1/rois/{roi}/similar/{hit}/"),
    ("get", "/api/v1/rois/{own}/similar/{hit}/"),
    ("get", "/api/v1/queries/{query}/similar/{hit}/"),
    ("post", "/rois/{roi}/similar/report/"),
    ("post", "/queries/{query}/report/"),
    ("get", "/reports/{report}/"),
    ("get", "/reports/{report}/again/"),
    ("post", "/reports/{report}/again/keep/"),
    ("post", "/reports/{report}/interpretation/"),
    ("post", "/reports/{report}/delete/"),
    ("get", "/reports/{report}/report.pdf"),
    ("get", "/reports/{report}/pictures/0.jpg"),
    ("get", "/reports/{report}/pictures/1.jpg"),
    ("get", "/api/v1/reports/{report}/"),
    ("get", "/api/v1/reports/{report}/interpretations/"),
    ("get", "/api/v1/reports/{report}/again/"),
    ("get", "/api/v1/reports/{report}/pdf/"),
    ("delete", "/api/v1/reports/{report}/"),
    ("get", "/api/v1/rois/{roi}/similar/"),
    ("get", "/api/v1/rois/{roi}/judgements/"),
    ("get", "/api/v1/queries/{query}/"),
    ("get", "/api/v1/queries/{query}/similar/"),
    ("delete", "/api/v1/queries/{query}/"),
    ("post", "/rois/{roi}/label/"),
    ("put", "/api/v1/rois/{roi}/label-confirmation/"),
    ("delete", "/api/v1/rois/{roi}/label-confirmation/"),
    ("get", "/lab/learning/{learning}/"),
    ("post", "/lab/learning/{learning}/promote/"),
    ("post", "/lab/learning/{learning}/roll-back/"),
    ("get", "/api/v1/learnings/{learning}/"),
    ("post", "/api/v1/learnings/{learning}/promote/"),
    ("post", "/api/v1/learnings/{learning}/roll-back/"),
    ("get", "/api/v1/encoders/{encoder}/"),
    ("get", "/api/v1/maps/{map}/"),
    ("get", "/api/v1/maps/{map}/points/"),
    ("get", "/api/v1/maps/{map}/near-duplicates/"),
    ("get", "/api/v1/maps/{map}/unlike/"),
    ("post", "/canvases/{canvas}/look-through/"),
    ("post", "/api/v1/canvases/{canvas}/look-through/"),
)


by_role = pytest.mark.parametrize(
    "role",
    [
        Role.MANAGER,
        *(pytest.param(r, marks=pytest.mark.endurance) for r in Role if r != Role.MANAGER),
    ],
)
APPS = ("portal.embeddings", "portal.explore", "portal.model_training", "portal.search")


def _with_ids(patterns, before=""):
    """Addresses of searches that name something by its id."""
    for pattern in patterns:
        address = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from _with_ids(pattern.url_patterns, address)
        elif pattern.callback.__module__.startswith(APPS) and "uuid:" in address:
            yield pattern.callback, address


def test_every_url_with_an_id_is_tested():
    requested = {
        resolve(re.sub(r"\{\w+\}", str(uuid.UUID(int=0)), item)).func for _, item in ADDRESSES
    }
    left = [
        address for view, address in _with_ids(get_resolver().url_patterns) if view not in requested
    ]
    assert left == []


def _observable_response(search, *keys):
    """Status, body without ids and tokens of the request, and number of queries."""
    with CaptureQueriesContext(connection) as made:
        answer = search()
    text = answer.content.decode()
    for key in keys:
        text = text.replace(str(key), "")
    return answer.status_code, re.sub(r"[0-9a-zA-Z]{32,}", "", text), len(made)


@pytest.mark.slow
@by_role
def test_objects_of_another_lab_look_like_missing_ones(labs, role):
    lab, other = labs
    page, api = signed_in(lab.people[role])
    for method, address in ADDRESSES:
        client, result = api if "/api/" in address else page, []
        theirs = {
            "roi": other.rois[0].pk,
            "hit": other.hit,
            "query": other.queries[0].pk,
            "map": other.map.pk,
            "canvas": other.canvases[0].pk,
            "report": other.report.pk,
            "learning": other.learning.pk,
            "encoder": other.learning.encoder_id,
        }
        nobodys = {word: uuid.uuid4() for word in theirs}
        for keys in (nobodys, theirs, nobodys):  # what a session keeps is read at first
            named = address.format(**keys, own=lab.rois[0].pk)
            result.append(
                _observable_response(partial(getattr(client, method), named), *keys.values())
            )
        assert result[1] == result[2], address
        assert result[1][0] == 404, address


@pytest.mark.slow
def test_ids_of_another_lab_in_a_request_body_are_not_found(labs):
    lab, other = labs
    page, api = signed_in(lab.people[Role.MANAGER])
    roi, query, shape = str(lab.rois[0].pk), lab.queries[0].pk, square(5, 5)
    region, area = other.rois[0].pk, {"source": "area", "geometry": shape}
    form, mark = {"source": "area", "geometry": json.dumps(shape)}, {"verdict": "alike"}
    bodies = (
        ("/api/v1/search/", region, lambda key: {"roi": roi, "liked": [key]}),
        ("/api/v1/search/", region, lambda key: {"roi": roi, "unliked": [key]}),
        ("/api/v1/search/", other.label.pk, lambda key: {"roi": roi, "filters": {"label": key}}),
        ("/api/v1/search/", region, lambda key: {"roi": key}),
        ("/api/v1/search/", other.learning.encoder_id, lambda key: {"roi": roi, "encoder": key}),
        ("/api/v1/learnings/", other.lab.pk, lambda key: {"lab": key}),
        ("/api/v1/maps/", other.lab.pk, lambda key: {"lab": key}),
        ("/api/v1/reports/", region, lambda key: {"roi": key}),
        ("/api/v1/reports/", region, lambda key: {"roi": roi, "liked": [key]}),
        ("/api/v1/reports/", other.queries[0].pk, lambda key: {"query": key}),
        (f"/api/v1/rois/{roi}/judgements/", region, lambda key: mark | {"other": key}),
        ("/api/v1/queries/", other.canvases[0].pk, lambda key: area | {"canvas": key}),
        ("/api/v1/queries/", region, lambda key: {"source": "area", "roi": key}),
        ("/api/v1/queries/", other.queries[0].pk, lambda key: {"query": key}),
        ("/api/v1/queries/", region, lambda key: {"source": "examples", "liked": [key]}),
        ("/api/v1/queries/", other.lab.pk, lambda key: {**_PICTURE, "lab": key}),
        ("/queries/ask/", other.canvases[0].pk, lambda key: form | {"canvas": key}),
        ("/queries/ask/", region, lambda key: {"source": "area", "roi": key}),
        ("/queries/ask/", other.queries[0].pk, lambda key: {"query": key}),
        (f"/rois/{roi}/judge/", region, lambda key: mark | {"other": key}),
        (f"/queries/{query}/mark/", region, lambda key: mark | {"other": key}),
        (f"/rois/{roi}/label/", other.label.pk, lambda key: {"label": key, "version": "1"}),
    )
    for address, theirs, body in bodies:
        nobodys, result = uuid.uuid4(), []
        how = partial(api.post, format="json") if "/api/" in address else page.post
        for key in (nobodys, theirs, nobodys):
            result.append(_observable_response(partial(how, address, body(str(key))), key))
        assert result[1] == result[2], (address, body(""))
        assert result[1][0] in (400, 404), (address, body(""))


@by_role
def test_values_of_another_lab_match_no_region(labs, role):
    """Parameters that are not rejected: a lab, a label filter, and a withdrawn judgement."""
    lab, other = labs
    slug, label, region = other.lab.slug, other.label.pk, other.rois[0].pk
    roi, query = lab.rois[0].pk, lab.queries[0].pk
    requested = (
        (slug, "get", lambda key: f"/browse/?lab={key}"),
        (slug, "get", lambda key: f"/browse/unannotated/?lab={key}"),
        (slug, "get", lambda key: f"/lab/learning/?lab={key}"),
        (slug, "post", lambda key: f"/lab/learning/?lab={key}"),
        (label, "get", lambda key: f"/rois/{roi}/similar/?label={key}"),
        (label, "get", lambda key: f"/queries/{query}/?label={key}"),
        (region, "delete", lambda key: f"/api/v1/rois/{roi}/judgements/{key}/"),
    )
    page, api = signed_in(lab.people[role])
    for theirs, method, address in requested:
        nobodys, result = uuid.uuid4(), []
        for key in (nobodys, theirs, nobodys):
            search = partial(getattr(api if "/api/" in address("") else page, method), address(key))
            result.append(_observable_response(search, key))
        assert result[1] == result[2], address("")

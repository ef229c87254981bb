"""Two labs drawn at random: nothing of one is told to anybody of the other by any search."""

from __future__ import annotations

import random
import re
import uuid
from functools import partial

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.annotations.models import Label, LabelSet
from portal.labs.models import Membership, Role, User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import (
    Encoder,
    EncoderKind,
    Explanation,
    IndexSnapshot,
    Learning,
    QuerySource,
    RegionMap,
    Report,
)
from portal.retrieval.selectors import MatchFound
from portal.retrieval.services import (
    QueryAsked,
    explanation_save,
    index_build_submit,
    map_draw,
    query_create,
)
from tests.portal.retrieval.conftest import World, square

ROUNDS = 16  # searches: each role of each lab asks twice, and each source comes up
TABS = ("", "near-duplicates/", "unlike/", "unannotated/")
MAP_PARTS = ("", "points/", "near-duplicates/", "unlike/")
WORDS = ("organ", "diagnosis", "tag", "label", "canvas", "accession")


class Lab:
    """A lab with words that are nowhere else, its regions drawn where the other's are."""

    def __init__(self, lab, storage, rng):
        self.lab, self.rng = lab, rng
        self.words = {word: f"{word}{rng.randrange(10**9)}x" for word in WORDS}
        self.people = {role: self._member(role) for role in Role.values}
        self.world = World(lab, self.people[Role.MANAGER], storage)
        labels = LabelSet.objects.create(lab=lab, name="Findings")
        self.label = Label.objects.create(lab=lab, label_set=labels, name=self.words["label"])
        self.canvases = [self._canvas(n) for n in range(3)]
        self.rois = [
            self.world.roi(canvas, rng.randrange(300), rng.randrange(300), label=self.label)
            for canvas in self.canvases
            for _ in range(2)
        ]
        self.queries = []

    def _member(self, role):
        user = User.objects.create_user(f"{role}@{self.lab.slug}.example", "correct horse battery")
        Membership.objects.create(user=user, lab=self.lab, role=role)
        return user

    def _canvas(self, number):
        case = self.world.case(f"{self.words['accession']}-{number}", "same-pseudonym")
        case.organ, case.diagnosis = self.words["organ"], self.words["diagnosis"]
        case.tags = [self.words["tag"]]
        case.save()
        canvas = self.world.canvas(case)
        canvas.name = self.words["canvas"]
        canvas.save()
        return canvas

    def ask(self):
        """A query of a random source by a random person."""
        user = self.rng.choice(list(self.people.values()))
        canvas = self.rng.choice(self.canvases).pk
        some = tuple(roi.pk for roi in self.rng.sample(self.rois, 2))
        asked = self.rng.choice(
            [
                {"source": QuerySource.AREA, "canvas_id": canvas, "geometry": square(5, 5)},
                {"source": QuerySource.ROIS, "canvas_id": canvas},
                {"source": QuerySource.EXAMPLES, "liked": some[:1], "unliked": some[1:]},
            ]
        )
        self.queries.append(query_create(asked=QueryAsked(**asked), user=user))

    def freeze_and_explain(self):
        """A report of an answer, and why its first hit was found, as the job would have told it."""
        page, api = _signed_in(self.people[Role.ANNOTATOR])
        asked = {"roi": str(self.rois[0].pk), "exclude_same_patient": False}
        assert api.post("/api/v1/reports/", asked, format="json").status_code == 202
        self.world.run_jobs()  # its pictures
        made = api.post("/api/v1/reports/", asked, format="json")
        assert made.status_code == 201, made.content
        self.report = Report.objects.get(pk=made.json()["id"])
        self.hit = self.rois[1].pk
        assert page.get(f"/rois/{self.rois[0].pk}/similar/why/{self.hit}/").status_code == 200
        found = MatchFound(
            similarity=0.5,
            distance=1.0,
            boxes_a=((0, 0, 9, 9),),
            boxes_b=((0, 0, 9, 9),),
            adds_a=(0.5,),
            adds_b=(0.5,),
            colour=0.1,
        )
        explanation_save(explanation_id=Explanation.objects.get(lab=self.lab).pk, found=found)

    def learn(self):
        """A metric of the lab's own, which nobody promoted."""
        base = Encoder.objects.get(lab=None)
        own = Encoder.objects.create(
            name=f"learned-{self.lab.slug}",
            version="1",
            dim=4,
            config_hash="l",
            lab=self.lab,
            base=base,
        )
        self.learning = Learning.objects.create(
            lab=self.lab, kind=base.kind, base=base, compared_with=base, encoder=own
        )

    def secrets(self):
        """What nobody of the other lab may read: words, and ids of everything."""
        rows = [self.label, *self.canvases, *self.rois, *self.queries]
        rows += [RegionMap.objects.get(lab=self.lab), self.report]
        rows += [self.learning, self.learning.encoder]
        rows += [canvas.case for canvas in self.canvases]
        return [*self.words.values(), *(str(row.pk) for row in rows)]


@pytest.fixture
def labs(lab, other_lab, storage, encoder):
    rng = random.Random(20)
    both = Lab(lab, storage, rng), Lab(other_lab, storage, rng)
    both[0].world.run_jobs()
    for one in both:  # one half of each lab in an index file, the other newer than it
        index_build_submit(scope=Scope(Encoder.objects.get(), one.lab.pk), version=1)
        map_draw(lab=one.lab, kind=EncoderKind.HISTOLOGY, user=one.people[Role.ANNOTATOR])
        both[0].world.run_jobs()
        one.map = RegionMap.objects.get(lab=one.lab)
        one.rois.append(one.world.embedded(one.canvases[0], 50, 50, label=one.label))
        for _ in range(6):
            one.ask()
        one.freeze_and_explain()
    both[0].world.run_jobs()
    for one in both:
        one.learn()
    assert IndexSnapshot.objects.values("lab").distinct().count() == 2
    return both


def _signed_in(user):
    page, api = Client(), APIClient()
    page.force_login(user)
    api.force_authenticate(user)
    return page, api


def _options(rng, own, other):
    """Filters by words of both labs: those of the other find nothing, as no word does."""
    words = rng.choice([own, other]).words
    chosen = {name: words[name] for name in ("organ", "diagnosis", "tag") if rng.random() < 0.2}
    for name in ("same_patient", "regions", "plain"):
        if rng.random() < 0.5:
            chosen[name] = "on"
    return chosen


@pytest.mark.endurance
def test_no_search_tells_of_another_lab(labs):
    rng = random.Random(21)
    seen = drawn = 0
    for number in range(ROUNDS):
        own, other = labs[number % 2], labs[1 - number % 2]
        page, api = _signed_in(own.people[Role.values[number // 2 % len(Role.values)]])
        asked = _options(rng, own, other)
        roi, query = rng.choice(own.rois), rng.choice(own.queries)
        rest = {"facets": "true", "by_case": "true", "exclude_same_patient": "false"}
        answers = [
            page.get(f"/rois/{roi.pk}/similar/", asked),
            page.get(f"/queries/{query.pk}/", asked),
            page.get("/queries/"),
            api.get(f"/api/v1/rois/{roi.pk}/similar/", rest | asked),
            api.get(f"/api/v1/queries/{query.pk}/similar/", rest | asked),
            api.get("/api/v1/queries/"),
            page.get(f"/rois/{own.rois[0].pk}/similar/why/{own.hit}/"),
            api.get(f"/api/v1/rois/{own.rois[0].pk}/similar/{own.hit}/"),
            page.get("/reports/"),
            page.get(f"/reports/{own.report.pk}/"),
            page.get(f"/reports/{own.report.pk}/again/"),
            api.get("/api/v1/reports/"),
            api.get(f"/api/v1/reports/{own.report.pk}/"),
            api.get(f"/api/v1/reports/{own.report.pk}/again/"),
            api.get(f"/api/v1/rois/{roi.pk}/judgements/"),
            *(page.get(f"/browse/{tab}") for tab in TABS),
            api.get("/api/v1/maps/"),
            api.get("/api/v1/unannotated/"),
            api.get("/api/v1/learnings/"),
            api.get("/api/v1/encoders/"),
            *(api.get(f"/api/v1/maps/{own.map.pk}/{part}") for part in MAP_PARTS),
        ]
        points = answers[-3].json()
        assert set(points["rois"]) <= {str(one.pk) for one in own.rois}
        drawn += len(points["rois"])
        for answer in answers:
            assert answer.status_code == 200, answer.content[:300]
            text = answer.content.decode()
            told = [word for word in other.secrets() if word in text and word not in asked.values()]
            assert told == [], answer.request["PATH_INFO"]
        for answer in answers[3:5]:
            facets = answer.json()["facets"]
            assert facets["regions"] <= len(own.rois)
            seen += len(answer.json()["results"])
    assert seen > ROUNDS, "the searches found something to tell"
    assert drawn > ROUNDS, "the maps have something on them"


_PICTURE = {"source": "picture", "picture": "AAAA", "kind": "histology", "mpp": 1}
ADDRESSES = (
    ("get", "/rois/{roi}/similar/"),
    ("get", "/rois/{roi}/thumbnail.jpg"),
    ("get", "/queries/{query}/"),
    ("get", "/queries/{query}/picture.jpg"),
    ("post", "/queries/{query}/mark/"),
    ("post", "/queries/{query}/remove/"),
    ("get", "/rois/{roi}/similar/why/{hit}/"),
    ("get", "/rois/{own}/similar/why/{hit}/"),
    ("post", "/rois/{own}/similar/why/{hit}/"),
    ("get", "/queries/{query}/why/{hit}/"),
    ("get", "/api/v1/rois/{roi}/similar/{hit}/"),
    ("get", "/api/v1/rois/{own}/similar/{hit}/"),
    ("get", "/api/v1/queries/{query}/similar/{hit}/"),
    ("post", "/rois/{roi}/similar/report/"),
    ("post", "/queries/{query}/report/"),
    ("get", "/reports/{report}/"),
    ("get", "/reports/{report}/again/"),
    ("post", "/reports/{report}/again/keep/"),
    ("post", "/reports/{report}/delete/"),
    ("get", "/reports/{report}/report.pdf"),
    ("get", "/reports/{report}/pictures/0.jpg"),
    ("get", "/reports/{report}/pictures/1.jpg"),
    ("get", "/api/v1/reports/{report}/"),
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


def _told(ask, *keys):
    """The status, what is said but for ids and tokens of the request, and by how many queries."""
    with CaptureQueriesContext(connection) as made:
        answer = ask()
    text = answer.content.decode()
    for key in keys:
        text = text.replace(str(key), "")
    return answer.status_code, re.sub(r"[0-9a-zA-Z]{32,}", "", text), len(made)


def test_what_is_anothers_is_not_found_as_what_never_was(labs):
    own, other = labs
    for role, user in own.people.items():
        page, api = _signed_in(user)
        for method, address in ADDRESSES:
            client, found = api if "/api/" in address else page, []
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
                named = address.format(**keys, own=own.rois[0].pk)
                found.append(_told(partial(getattr(client, method), named), *keys.values()))
            assert found[1] == found[2], (role, address)
            assert found[1][0] == 404, (role, address)


def test_ids_of_another_lab_in_a_body_are_ids_of_nothing(labs):
    own, other = labs
    _, api = _signed_in(own.people[Role.MANAGER])
    roi, shape = str(own.rois[0].pk), {"source": "area", "geometry": square(5, 5)}
    bodies = (
        ("search", other.rois[0].pk, lambda key: {"roi": roi, "liked": [key]}),
        ("search", other.rois[0].pk, lambda key: {"roi": roi, "unliked": [key]}),
        ("search", other.label.pk, lambda key: {"roi": roi, "filters": {"label": key}}),
        ("search", other.rois[0].pk, lambda key: {"roi": key}),
        ("search", other.learning.encoder_id, lambda key: {"roi": roi, "encoder": key}),
        ("learnings", other.lab.pk, lambda key: {"lab": key}),
        ("queries", other.canvases[0].pk, lambda key: shape | {"canvas": key}),
        ("queries", other.rois[0].pk, lambda key: {"source": "area", "roi": key}),
        ("queries", other.queries[0].pk, lambda key: {"query": key}),
        ("queries", other.rois[0].pk, lambda key: {"source": "examples", "liked": [key]}),
        ("queries", other.lab.pk, lambda key: {**_PICTURE, "lab": key}),
    )
    for address, theirs, body in bodies:
        nobodys, found = uuid.uuid4(), []
        for key in (nobodys, theirs, nobodys):
            sent = body(str(key))
            ask = partial(api.post, f"/api/v1/{address}/", sent, format="json")
            found.append(_told(ask, key))
        assert found[1] == found[2], body("")
        assert found[1][0] in (400, 404), body("")

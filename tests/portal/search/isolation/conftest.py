"""Two labs drawn at random, each with words that are nowhere else and something of everything."""

from __future__ import annotations

import random

import pytest
from rest_framework.test import APIClient

from portal.annotations.models import Label, LabelSet
from portal.archive.models import Modality
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Encoder, IndexSnapshot
from portal.embeddings.services.indexes import index_build_submit
from portal.explore.models import RegionMap
from portal.explore.services.maps import map_draw_submit
from portal.labs.models import Membership, Role, User
from portal.model_training.models import Learning
from portal.search.models import Explanation, QuerySource, Report
from portal.search.selectors.explanations import MatchExplanation
from portal.search.services.explanations import explanation_save
from portal.search.services.queries import QueryData, query_create
from tests.clients import client_of
from tests.portal.embedded_rois import World, square

WORDS = ("organ", "diagnosis", "stain", "tag", "label", "canvas", "accession")


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
        return self.world.scanned(canvas, stain=self.words["stain"])

    def search(self):
        """A query of a random source by a random person."""
        user = self.rng.choice(list(self.people.values()))
        canvas = self.rng.choice(self.canvases).pk
        some = tuple(roi.pk for roi in self.rng.sample(self.rois, 2))
        requested = self.rng.choice(
            [
                {"source": QuerySource.AREA, "canvas_id": canvas, "geometry": square(5, 5)},
                {"source": QuerySource.ROIS, "canvas_id": canvas},
                {"source": QuerySource.EXAMPLES, "liked": some[:1], "unliked": some[1:]},
            ]
        )
        self.queries.append(query_create(data=QueryData(**requested), user=user))

    def freeze_and_explain(self):
        """Store a report of a search, and an explanation of its first hit as a job writes it."""
        page, api = signed_in(self.people[Role.ANNOTATOR])
        params = {"roi": str(self.rois[0].pk), "exclude_same_patient": False}
        assert api.post("/api/v1/reports/", params, format="json").status_code == 202
        self.world.run_jobs()  # its pictures
        made = api.post("/api/v1/reports/", params, format="json")
        assert made.status_code == 201, made.content
        self.report = Report.objects.get(pk=made.json()["id"])
        self.hit = self.rois[1].pk
        assert (
            page.get(f"/rois/{self.rois[0].pk}/similar/explanation/{self.hit}/").status_code == 200
        )
        explanation = MatchExplanation(
            similarity=0.5,
            distance=1.0,
            boxes_a=((0, 0, 9, 9),),
            boxes_b=((0, 0, 9, 9),),
            contributions_a=(0.5,),
            contributions_b=(0.5,),
            colour=0.1,
        )
        explanation_save(
            explanation_id=Explanation.objects.get(lab=self.lab).pk, explanation=explanation
        )

    def learn(self):
        """A metric of the lab's own, which nobody promoted."""
        base = Encoder.objects.get(lab=None)
        lab_encoder = Encoder.objects.create(
            name=f"learned-{self.lab.slug}",
            version="1",
            dim=4,
            config_hash="l",
            lab=self.lab,
            base=base,
        )
        self.learning = Learning.objects.create(
            lab=self.lab, kind=base.kind, base=base, compared_with=base, encoder=lab_encoder
        )

    def secrets(self):
        """Words and ids that members of the other lab must not read."""
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
    for side in both:  # one half of each lab in an index file, the other newer than it
        index_build_submit(scope=Scope(Encoder.objects.get(), side.lab.pk))
        map_draw_submit(lab=side.lab, kind=Modality.HISTOLOGY, user=side.people[Role.ANNOTATOR])
        both[0].world.run_jobs()
        side.map = RegionMap.objects.get(lab=side.lab)
        side.rois.append(side.world.embedded(side.canvases[0], 50, 50, label=side.label))
        for _ in range(6):
            side.search()
        side.freeze_and_explain()
    both[0].world.run_jobs()
    for side in both:
        side.learn()
    assert IndexSnapshot.objects.values("lab").distinct().count() == 2
    return both


def signed_in(user):
    """A browser and a program of this person."""
    page, api = client_of(user), APIClient()
    api.force_authenticate(user)
    return page, api

"""A small world: cases with stills, ROIs drawn through the services, an encoder without torch."""

from __future__ import annotations

import io
import sys
import uuid
from collections import namedtuple
from functools import cache
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from portal.annotations.models import Label, LabelSet
from portal.annotations.services import roi_create
from portal.archive.models import Asset, Canvas, Case, Slide
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run

SIDE = 400


class BoxEncoder:
    """Vectors anyone can work out: centre and size of the outline's bounds."""

    version, config_hash, dim = "1", "abc", 4
    normalises, stain_method = False, "none"

    def __init__(self, name="box", kind="histology"):
        self.name, self.kind = name, kind
        self.calls = 0
        self.fails_with = None

    def embed_image(self, image, polygon, *, mpp=None, progress):
        return self._embedded(polygon, progress)

    def embed_region(self, slide, polygon_l0, mpp=None, progress=None, stain=None):
        assert slide.info.width_px == SIDE
        return self._embedded(polygon_l0, progress)

    def embed_regions(self, slide, polygons_l0, mpp=None, progress=None, *, stain=None):
        found = []
        for polygon in polygons_l0:
            try:
                found.append(self.embed_region(slide, polygon, mpp, progress, stain=stain))
            except BadInputError as error:
                found.append(error)
        return found

    def embed_slides(self, slides, progress=None):
        return [
            self.embed_regions(one.slide, one.polygons_l0, one.mpp, progress, stain=one.stain)
            for one in slides
        ]

    def _embedded(self, polygon, progress):
        self.calls += 1
        if self.fails_with:
            raise self.fails_with
        progress(1, 1, "patches")
        return SimpleNamespace(vector=box_vector(polygon.bounds), n_patches=3, seconds=0.1)


def box_vector(bounds):
    left, top, right, bottom = bounds
    return np.array(
        [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top], dtype=np.float32
    )


@pytest.fixture
def encoder(monkeypatch):
    made = BoxEncoder()
    known = {"default": made, "endoscopy": BoxEncoder("scope", "endoscopy")}
    module = ModuleType("ml.roi")
    module.load_encoder = lambda name="default": known[name]
    module.regions_together = lambda: 1
    module.SlideRegions = namedtuple("SlideRegions", "slide polygons_l0 mpp stain")
    monkeypatch.setitem(sys.modules, "ml.roi", module)
    return made


@cache
def _pink():
    out = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), "#e8c8d8").save(out, "PNG")
    return out.getvalue()


class World:
    """Shorthands for a test's story."""

    def __init__(self, lab, user, storage):
        self.lab, self.user, self.storage = lab, user, storage

    def case(self, accession, patient="", organ="", lab=None):
        return Case.objects.create(
            lab=lab or self.lab, accession=accession, patient_key=patient, organ=organ
        )

    def canvas(self, case, kind="still"):
        path = self.storage / f"{uuid.uuid4()}.png"
        path.write_bytes(_pink())
        return Canvas.objects.create(
            lab=case.lab,
            case=case,
            kind=kind,
            name=f"Slide of {case.accession}",
            width_px=SIDE,
            height_px=SIDE,
            levels=[],
            pixels_path=path.name,
            content_hash="0" * 64,
        )

    def scanned(self, canvas, vendor="", stain=""):
        """The slide that a canvas shows."""
        asset = Asset.objects.create(lab=canvas.lab, sha256=canvas.pk.hex * 2, size_bytes=1)
        said = {"vendor": vendor, "stain": stain, "name": "S"}
        Slide.objects.create(lab=canvas.lab, case=canvas.case, asset=asset, canvas=canvas, **said)
        return canvas

    def roi(self, canvas, left=10, top=10, side=20, user=None, **fields):
        return roi_create(
            canvas=canvas, user=user or self.user, geometry=square(left, top, side), **fields
        ).roi

    def labels(self, *names):
        labels = LabelSet.objects.create(lab=self.lab, name="Findings")
        return [Label.objects.create(lab=self.lab, label_set=labels, name=name) for name in names]

    def run_jobs_of(self, kind):
        """Run what is queued of one kind."""
        for job in Job.objects.filter(state=JobState.QUEUED, kind=kind):
            job_run(job.pk)

    def run_jobs(self):
        """Run what is queued until nothing is."""
        while queued := list(Job.objects.filter(state=JobState.QUEUED).order_by("created_at")):
            for job in queued:
                job_run(job.pk)

    def embedded(self, canvas, *args, **fields):
        roi = self.roi(canvas, *args, **fields)
        self.run_jobs()
        return roi


def square(left, top, side=20):
    right, bottom = left + side, top + side
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


@pytest.fixture
def world(lab, annotator, storage, encoder):
    return World(lab, annotator, storage)


def jobs(kind="roi_embed"):
    return list(Job.objects.filter(kind=kind).order_by("created_at"))

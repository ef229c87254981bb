"""A small world: cases with stills, ROIs drawn through the services, an encoder without torch."""

from __future__ import annotations

import io
import uuid
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from portal.annotations.models import Label, LabelSet
from portal.annotations.services.rois import roi_create
from portal.archive.models import Asset, Canvas, Case, Slide
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run

SIDE = 400


class BoxEncoder:
    """Vectors anyone can work out: centre and size of the outline's bounds."""

    version, config_hash, dim = "1", "abc", 4
    normalises, stain_method = False, "none"

    def __init__(self, name: Any = "box", kind: Any = "histology") -> None:
        self.name, self.kind = name, kind
        self.calls = 0
        self.fails_with = None

    def embed_image(self, image: Any, polygon: Any, *, mpp: Any = None, progress: Any) -> Any:
        return self._embedded(polygon, progress)

    def embed_region(
        self, slide: Any, polygon_l0: Any, mpp: Any = None, progress: Any = None, stain: Any = None
    ) -> Any:
        assert slide.info.width_px == SIDE
        return self._embedded(polygon_l0, progress)

    def embed_regions(
        self,
        slide: Any,
        polygons_l0: Any,
        mpp: Any = None,
        progress: Any = None,
        *,
        stain: Any = None,
    ) -> Any:
        result = []
        for polygon in polygons_l0:
            try:
                result.append(self.embed_region(slide, polygon, mpp, progress, stain=stain))
            except BadInputError as error:
                result.append(error)
        return result

    def embed_slides(self, slides: Any, progress: Any = None) -> Any:
        return [
            self.embed_regions(
                slide.slide, slide.polygons_l0, slide.mpp, progress, stain=slide.stain
            )
            for slide in slides
        ]

    def _embedded(self, polygon: Any, progress: Any) -> Any:
        self.calls += 1
        if self.fails_with:
            raise self.fails_with
        progress(1, 1, "patches")
        return SimpleNamespace(vector=box_vector(polygon.bounds), n_patches=3, seconds=0.1)


def box_vector(bounds: Any) -> Any:
    left, top, right, bottom = bounds
    return np.array(
        [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top], dtype=np.float32
    )


@pytest.fixture
def encoder(monkeypatch: Any) -> Any:
    made = BoxEncoder()
    known = {"default": made, "endoscopy": BoxEncoder("scope", "endoscopy")}
    monkeypatch.setattr("ml.roi.load_encoder", lambda name="default": known[name])
    monkeypatch.setattr("ml.roi.batching.embed_batch_size", lambda: 1)
    return made


@cache
def _pink() -> Any:
    out = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), "#e8c8d8").save(out, "PNG")
    return out.getvalue()


class World:
    """Shorthands for a test's story."""

    def __init__(self, lab: Any, user: Any, storage: Any) -> None:
        self.lab, self.user, self.storage = lab, user, storage

    def case(self, accession: Any, patient: Any = "", organ: Any = "", lab: Any = None) -> Any:
        return Case.objects.create(
            lab=lab or self.lab, accession=accession, patient_key=patient, organ=organ
        )

    def canvas(self, case: Any, kind: Any = "still", modality: Any = "") -> Any:
        path = self.storage / f"{uuid.uuid4()}.png"
        path.write_bytes(_pink())
        return Canvas.objects.create(
            lab=case.lab,
            case=case,
            kind=kind,
            modality=modality or ("endoscopy" if kind in ("video", "mosaic") else "histology"),
            name=f"Slide of {case.accession}",
            width_px=SIDE,
            height_px=SIDE,
            levels=[],
            pixels_path=path.name,
            content_hash="0" * 64,
        )

    def scanned(self, canvas: Any, vendor: Any = "", stain: Any = "") -> Any:
        """The slide that a canvas shows."""
        asset = Asset.objects.create(lab=canvas.lab, sha256=canvas.pk.hex * 2, size_bytes=1)
        data = {"vendor": vendor, "stain": stain, "name": "S"}
        Slide.objects.create(lab=canvas.lab, case=canvas.case, asset=asset, canvas=canvas, **data)
        return canvas

    def roi(
        self,
        canvas: Any,
        left: Any = 10,
        top: Any = 10,
        side: Any = 20,
        user: Any = None,
        **fields: Any,
    ) -> Any:
        return roi_create(
            canvas=canvas, user=user or self.user, geometry=square(left, top, side), **fields
        ).roi

    def labels(self, *names: Any) -> Any:
        labels = LabelSet.objects.create(lab=self.lab, name="Findings")
        return [Label.objects.create(lab=self.lab, label_set=labels, name=name) for name in names]

    def run_jobs_of(self, kind: Any) -> None:
        """Run what is queued of one kind."""
        for job in Job.objects.filter(state=JobState.QUEUED, kind=kind):
            job_run(job.pk)

    def run_jobs(self) -> None:
        """Run what is queued until nothing is."""
        while queued := list(Job.objects.filter(state=JobState.QUEUED).order_by("created_at")):
            for job in queued:
                job_run(job.pk)

    def embedded(self, canvas: Any, *args: Any, **fields: Any) -> Any:
        roi = self.roi(canvas, *args, **fields)
        self.run_jobs()
        return roi


def square(left: Any, top: Any, side: Any = 20) -> Any:
    right, bottom = left + side, top + side
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


@pytest.fixture
def world(lab: Any, annotator: Any, storage: Any, encoder: Any) -> Any:
    return World(lab, annotator, storage)


def jobs(kind: Any = "roi_embed") -> Any:
    return list(Job.objects.filter(kind=kind).order_by("created_at"))

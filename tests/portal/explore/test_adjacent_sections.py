"""Real sections and the shipped encoder: the first hit is the same place of the next section.

The adjacent sections are D1 and D2 of patient C of HER2ST (``TESSERA_DATA``). Its sections E1 and
E2 are of the same block and show the same places, so other tissue is that of patient B. D2 is laid
onto D1 by its thumbnail, so that the same place of both is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient

from ml.imaging.slides.slide import open_slide
from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, Case
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, User
from tests.sections import laid_onto

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.endurance]
SIDE, COUNT = 1024, 16
OFF_PX = 1.5 * SIDE  # a hit so near to the same place shows the same tissue


def canvas_of(lab: Lab, case: Case, path: Path, storage: Path) -> Canvas:
    (storage / path.name).symlink_to(path)
    with open_slide(path) as slide:
        width, height = slide.info.width_px, slide.info.height_px
    return Canvas.objects.create(
        lab=lab,
        case=case,
        kind="still",
        name=path.stem,
        width_px=width,
        height_px=height,
        levels=[],
        pixels_path=path.name,
        content_hash="0" * 64,
    )


def drawn(canvas: Canvas, user: User, middles: Any) -> list[Roi]:
    hits = []
    for x, y in np.asarray(middles, float).tolist():
        left, top, right, bottom = (
            round(v, 1) for v in (x - SIDE / 2, y - SIDE / 2, x + SIDE / 2, y + SIDE / 2)
        )
        ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        hits.append(roi_create(canvas=canvas, user=user, geometry=geometry).roi)
    return hits


@pytest.fixture
def sections(
    lab: Lab, annotator: User, storage: Path, tessera_data: Path
) -> tuple[list[Roi], list[Roi]]:
    """ROIs on D1, at the same places of D2, and on tissue of another patient; embedded."""
    from ml.roi.stain.squares import tissue_squares

    folder = tessera_data / "histology"
    paths = {name: folder / "sections" / f"5714_HE_BT_{name}.jpg" for name in ("D1", "D2")}
    paths["B"] = folder / "slides" / "her2st-b-d2.tif"
    canvases, middles = {}, {}
    for name, path in paths.items():
        case = Case.objects.create(lab=lab, accession=name)
        canvases[name] = canvas_of(lab, case, path, storage)
        with open_slide(path) as slide:
            squares = tissue_squares(slide, SIDE, max_count=400)
        middles[name] = (squares[:, :2] + squares[:, 2:]) / 2
    turn = laid_onto(paths["D1"], paths["D2"])
    same = np.c_[middles["D1"], np.ones(len(middles["D1"]))] @ turn.T
    size = np.array([canvases["D2"].width_px, canvases["D2"].height_px])
    inside = ((same > SIDE / 2) & (same < size - SIDE / 2)).all(axis=1)
    requested = drawn(canvases["D1"], annotator, middles["D1"][inside][:COUNT])
    there = drawn(canvases["D2"], annotator, same[inside][:COUNT])
    drawn(canvases["B"], annotator, middles["B"][: 2 * COUNT])
    while queued := list(Job.objects.filter(state=JobState.QUEUED).order_by("created_at")):
        for job in queued:
            job_run(job.pk)
    return requested, there


def hits_of(api: APIClient, roi: Roi, **more: Any) -> list[str]:
    body = {"roi": str(roi.pk), "k": 100, "exclude_same_patient": False} | more
    answer = api.post("/api/v1/search/", body, format="json")
    assert answer.status_code == 200, answer.content
    return [hit["roi"]["id"] for hit in answer.json()["results"]]


def middle(roi: Roi) -> Any:
    return np.array([roi.centroid_x, roi.centroid_y])


def _places(
    api: APIClient, requested: list[Roi], there: list[Roi], **options: Any
) -> tuple[list[int], list[bool]]:
    """Ranks of the same places, and whether the first hit is near its place."""
    by_id = {str(roi.pk): roi for roi in there}
    query_ids = {str(roi.pk) for roi in requested}
    ranks, near = [], []
    for item, same in zip(requested, there, strict=True):
        result = hits_of(api, item, **options)
        hits = [hit for hit in result if hit not in query_ids]  # not the section that was drawn on
        ranks.append(hits.index(str(same.pk)) + 1)
        first = by_id.get(hits[0])
        near.append(first is not None and bool(np.hypot(*(middle(first) - middle(same))) < OFF_PX))
    return ranks, near


def test_the_same_place_of_the_next_section_is_first_and_enters_a_report(
    api: APIClient, client: Client, annotator: User, sections: tuple[list[Roi], list[Roi]]
) -> None:
    requested, there = sections
    # By distance, then as the portal searches. Chance: fewer than one in ten.
    for options, min_share in (({"diffuse": False}, 0.75), ({}, 0.6)):
        ranks, near = _places(api, requested, there, **options)
        assert len(ranks) == COUNT
        assert np.mean(near) >= min_share, ranks
        assert np.mean(np.array(ranks) <= 3) >= min_share, ranks

    item, first = requested[0], hits_of(api, requested[0])[0]
    data = {"other": first, "verdict": "unlike"}
    assert api.post(f"/api/v1/rois/{item.pk}/judgements/", data, format="json").status_code == 200
    assert first not in hits_of(api, item, judged=True)
    client.force_login(annotator)
    made = client.post(f"/rois/{item.pk}/similar/report/?exclude_same_patient=")
    printed = client.get(f"{made['Location']}report.pdf")
    assert printed["Content-Type"] == "application/pdf" and printed.content.startswith(b"%PDF")

"""More in the world of the examples: what some addresses need to have an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ml.quantification.result import NucleusTable, Quantification
from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, CanvasKind
from portal.archive.services.clips import clip_request
from portal.archive.services.items import item_receive
from portal.embeddings.models import Embedding
from portal.interop.rocrate.services.exports import case_export_request, cases_export_request
from portal.jobs.models import Job
from portal.jobs.worker.runner import job_run
from portal.labs.models import User
from portal.mosaics.models import Mosaic
from portal.mosaics.services.mosaics import mosaic_create
from portal.quantification.selectors import config_of
from portal.quantification.services import quantification_save
from portal.reader_studies.models import Assignment, Study
from portal.reader_studies.selectors.results import image_result
from portal.reader_studies.services.assignments import assignment_submit
from portal.search.models import Explanation
from portal.search.selectors.explanations import MatchedPair, MatchExplanation
from tests import world
from tests.portal.access.conftest import Scene
from tests.portal.annotations.staging import document, run, stage
from tests.portal.embedded_rois import World as RegionWorld
from tests.portal.model_training.archives import filled

_MATCH = MatchExplanation(
    similarity=0.75,
    distance=0.5,
    boxes_a=((20.0, 20.0, 84.0, 84.0), (84.0, 20.0, 148.0, 84.0)),
    boxes_b=((420.0, 40.0, 484.0, 104.0), (484.0, 40.0, 548.0, 104.0)),
    contributions_a=(0.8, -0.05),
    contributions_b=(0.5, 0.25),
    pairs=(MatchedPair(a=0, b=1, contribution=0.5, share=0.625),),
    half_a=0.5,
    half_b=0.5,
    colour=0.61,
)


def furnish(scene: Scene) -> dict[str, str]:
    """Readings handed in, regions with vectors, a mosaic, an export, a report of an import.

    Returns their ids, by the words that the examples know them by.
    """
    made, manager = scene.world, scene.cast.users["manager"]
    other = _drawn(made.canvas, manager, 420, 40, 620, 240)
    _hand_in(scene)
    _explain(scene, other)
    _measured(scene)
    _done(case_export_request(user=manager, case_id=made.case.pk))
    exports = cases_export_request(user=manager, case_ids=[made.case.pk])
    _done(exports)
    _done(clip_request(video=made.video, user=manager, first_index=2, last_index=5))
    preview = run(stage(made.canvas, manager, document(3), is_preview=True))
    mosaic = _stitched(scene)
    assert mosaic.canvas is not None
    return {
        "other_rois": str(other.pk),
        "exports": str(exports.pk),
        "roi-imports": str(preview.pk),
        "built_mosaics": str(mosaic.pk),
        "mosaic_rois": str(_drawn(mosaic.canvas, manager, 40, 40, 90, 90).pk),
    }


def prepare(scene: Scene, name: str) -> dict[str, str]:
    """Create the data of one example; the caller rolls it back. Returns ids for its URL."""
    return _PREPARED[name](scene) if name in _PREPARED else {}


def _without_scale(scene: Scene) -> dict[str, str]:
    Canvas.objects.filter(pk=scene.world.canvas.pk).update(mpp_x=None, mpp_y=None)
    return {}


def _with_vectors(scene: Scene) -> dict[str, str]:
    made = scene.world
    _explain(scene, _drawn(made.canvas, scene.cast.users["manager"], 420, 40, 620, 240))
    return {}


def _many_patients(scene: Scene) -> dict[str, str]:
    made = scene.world
    filled(RegionWorld(made.case.lab, scene.cast.users["manager"], scene.folder))
    return {}


def _on_a_mosaic(scene: Scene) -> dict[str, str]:
    """A place on another mosaic of the patient of the video."""
    made = scene.world
    canvas = RegionWorld(made.case.lab, scene.cast.users["manager"], scene.folder).canvas(
        made.case, CanvasKind.MOSAIC
    )
    return {"video_rois": str(_drawn(canvas, scene.cast.users["manager"], 9, 9, 60, 60).pk)}


def _compared(scene: Scene) -> dict[str, str]:
    """The first finding of the study's image."""
    _hand_in(scene)
    study = Study.objects.get(pk=scene.ids["studies"])
    canvas = Canvas.objects.get(pk=scene.ids["video_canvases"])
    finding = image_result(study, canvas).findings[0]
    return {"canvases": str(canvas.pk), "rois": str(finding.id)}


_PREPARED = {
    "canvases_partial_update": _without_scale,
    "followups_create": _on_a_mosaic,
    "learnings_create": _many_patients,
    "maps_create": _with_vectors,
    "studies_decide": _compared,
}


def _drawn(
    canvas: Canvas, user: User, left: int, top: int, right: int, bottom: int, **fields: Any
) -> Roi:
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return roi_create(canvas=canvas, user=user, geometry=geometry, **fields).roi


def _done(job: Job | None) -> None:
    assert job is not None
    job_run(job.pk)
    job.refresh_from_db()
    assert job.state == "succeeded", job.error_message + job.traceback


def _measured(scene: Scene) -> None:
    """Figures of the region: two nuclei, one of them moderately positive."""
    canvas = scene.world.canvas
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=canvas.mpp_x or 0.5, mpp_y=canvas.mpp_y or 0.5)
    roi = Roi.objects.select_related("canvas").get(pk=scene.ids["rois"])
    nuclei = NucleusTable(
        xy_l0=np.array([[60.0, 60.0], [90.0, 110.0]]),
        radius_um=np.array([4.0, 5.0], np.float32),
        dab_od=np.array([0.05, 0.45], np.float32),
        bins=np.array([0, 2], np.uint8),
    )
    outcome = Quantification(
        area_mm2=0.0196,
        tissue_mm2=0.0185,
        mean_od={"haematoxylin": 0.25, "dab": 0.125},
        positive_area_percent=12.5,
        nuclei=nuclei,
        nuclei_missing="",
        has_nuclear_marker=True,
        working_mpp=0.5,
    )
    config = config_of(roi.lab_id, "dab-nuclear")
    quantification_save(roi=roi, user=None, config=config, measured=outcome)


def _hand_in(scene: Scene) -> None:
    """Both readers of the study saw one thing alike, and one of them another."""
    for assignment in Assignment.objects.filter(study__pk=scene.ids["studies"]).select_related(
        "person"
    ):
        reader = assignment.person
        is_first = reader == scene.cast.users["annotator"]
        User.objects.filter(pk=reader.pk).update(is_active=True)
        _drawn(assignment.canvas, reader, 10, 10, 40, 40 if is_first else 36, frame_index=0)
        if is_first:
            _drawn(assignment.canvas, reader, 60, 20, 80, 50, frame_index=0)
        assignment_submit(assignment=assignment, user=reader)
        User.objects.filter(pk=reader.pk).update(is_active=is_first)


def _explain(scene: Scene, other: Roi) -> None:
    made = scene.world
    made.encoder.is_default = True
    made.encoder.save()
    vectors = [
        Embedding.objects.create(
            lab=roi.lab,
            encoder=made.encoder,
            roi=roi,
            canvas=made.canvas,
            roi_version=roi.version,
            vector=np.full(4, at, "<f4").tobytes(),
        )
        for at, roi in enumerate((made.roi, other))
    ]
    made.query.encoder = made.encoder
    made.query.vector = np.zeros(4, "<f4").tobytes()
    made.query.save()
    result = _MATCH.as_json()
    for requested in ({"embedding": vectors[0]}, {"query": made.query}):
        Explanation.objects.create(lab=other.lab, hit=vectors[1], result=result, **requested)


def _stitched(scene: Scene) -> Mosaic:
    manager = scene.cast.users["manager"]
    path: Path = world.moving_video_file(scene.folder)
    with path.open("rb") as file:
        received = item_receive(case=scene.world.case, file=file, filename=path.name, user=manager)
    _done(received.job)
    received.item.refresh_from_db()
    video: Any = received.item
    requested = mosaic_create(video=video, user=manager)
    _done(requested.job)
    requested.mosaic.refresh_from_db()
    return requested.mosaic

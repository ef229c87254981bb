"""Workflow of the demo: ingest, draw, embed, search, mosaic."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from portal.annotations.models import Roi
from portal.archive.models import Case, ItemState, Slide, Video
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.archive.services.stains import slide_stain_set
from portal.jobs.models import Job, JobState
from portal.labs.models import User
from portal.mosaics.models import Mosaic
from portal.mosaics.services.mosaics import mosaic_create
from portal.operations.demo.material import DemoFile
from portal.operations.demo.people import Cast
from portal.operations.demo.progress import jobs_wait
from portal.operations.demo.rois import rois_draw

Say = Callable[[str], Any]


@dataclass
class DemoResult:
    """Objects created by the demo, for the report."""

    slides: list[Slide] = field(default_factory=list)
    videos: list[Video] = field(default_factory=list)
    rois: list[Roi] = field(default_factory=list)
    mosaics: list[Mosaic] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def demo_run(material: Iterable[DemoFile], *, people: Cast, say: Say) -> DemoResult:
    """Run every step; results of an earlier run are reused."""
    outcome = DemoResult()
    for name, step in (
        ("ingest", _ingest),
        ("draw and embed", _embed),
        ("mosaics", _mosaics),
    ):
        began = time.monotonic()
        step(outcome, list(material), people, say)
        outcome.seconds[name] = time.monotonic() - began
    return outcome


def _ingest(outcome: DemoResult, material: list[DemoFile], people: Cast, say: Say) -> None:
    items: list[tuple[DemoFile, Slide | Video]] = []
    jobs: list[uuid.UUID] = []
    for piece in material:
        user = getattr(people, piece.by)
        with piece.path.open("rb") as file:
            received = item_receive(
                case=_case(piece, people, user), file=file, filename=piece.path.name, user=user
            )
        if isinstance(received.item, Slide) and piece.stain and not received.item.stain:
            slide_stain_set(slide=received.item, user=user, stain=piece.stain)
        items.append((piece, received.item))
        if received.job is not None:
            jobs.append(received.job.pk)
    _note_failures(outcome, jobs_wait(jobs, title="slides and videos ingested"))
    for _, item in items:
        item.refresh_from_db()
        if item.state == ItemState.READY:
            (outcome.slides if isinstance(item, Slide) else outcome.videos).append(item)  # type: ignore[arg-type]


def _case(piece: DemoFile, people: Cast, user: User) -> Case:
    existing = (
        Case.objects.visible_to(user).filter(lab=people.lab, accession=piece.accession).first()
    )
    return existing or case_create(
        lab=people.lab,
        user=user,
        accession=piece.accession,
        patient_key=piece.patient_key,
        organ=piece.organ,
        procedure=piece.procedure,
        diagnosis=piece.diagnosis,
        tags=list(piece.tags),
    )


def _embed(outcome: DemoResult, material: list[DemoFile], people: Cast, say: Say) -> None:
    by_accession = {piece.accession: piece for piece in material}
    for slide in outcome.slides:
        piece = by_accession[slide.case.accession]
        outcome.rois += rois_draw(slide, piece, people)
    ids = [roi.pk for roi in outcome.rois]
    jobs = Job.objects.filter(kind="roi_embed", target_id__in=ids).values_list("pk", flat=True)
    _note_failures(outcome, jobs_wait(list(jobs), title="regions of interest embedded"))


def _mosaics(outcome: DemoResult, material: list[DemoFile], people: Cast, say: Say) -> None:
    for video in outcome.videos:
        creation = mosaic_create(video=video, user=people.endoscopist)
        mosaic = creation.mosaic
        if creation.job is not None:
            _note_failures(
                outcome, jobs_wait([creation.job.pk], title=f"mosaic of {video.name}"[:26])
            )
            mosaic.refresh_from_db()
        outcome.mosaics.append(mosaic)


def _note_failures(outcome: DemoResult, jobs: list[Job]) -> None:
    for job in jobs:
        if job.state != JobState.SUCCEEDED:
            outcome.failures.append(f"{job.title} of {job.target_name}: {job.error_message}")

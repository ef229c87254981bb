"""Encoders: the default, and what takes its place."""

from __future__ import annotations

import pytest

from portal.annotations.selectors.embedded import rois_embedded
from portal.core.errors import ConflictError
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.selectors.encoders import encoder_default, encoder_for, encoder_next
from portal.embeddings.services.encoders import (
    EncoderIdentity,
    encoder_approve,
    encoder_register,
    encoder_reject,
)
from portal.jobs import claims
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.search.selectors.similar_cases import SimilarQuery, similar_search
from tests.portal.embedded_rois import jobs


def test_a_new_default_encoder_embeds_every_lab_again(world, encoder):
    roi = world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    old = Encoder.objects.get(is_default=True)
    new = encoder_register(facts=facts, is_default=True)
    assert new.is_next and encoder_default() == old  # searched until the new is complete
    assert rois_embedded([roi.pk]) == {roi.pk}
    world.run_jobs()
    assert list(Encoder.objects.filter(is_default=True)) == [new]
    assert set(Embedding.objects.filter(roi=roi).values_list("encoder__version", flat=True)) == {
        "1",
        "2",
    }
    assert rois_embedded([roi.pk]) == {roi.pk}
    assert encoder_register(facts=facts, is_default=True) == new
    assert len(jobs("lab_embed")) == 1


def test_the_new_default_waits_for_every_roi_and_not_for_one_without_tissue(world, encoder):
    first = world.embedded(world.canvas(world.case("A1")))
    second = world.embedded(world.canvas(world.case("A2")))
    old = encoder_default()
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    new = encoder_register(facts=facts, is_default=True)
    (lab_job,) = jobs("lab_embed")
    job_run(lab_job.pk)
    todo = [job for job in jobs("canvas_embed") if not job.has_ended]
    assert {job.target_id for job in todo} == {first.canvas_id, second.canvas_id}
    job_run(todo[0].pk)
    assert encoder_default() == old
    claims.end_job(
        Job.objects.filter(pk=todo[1].pk), todo[1].pk, JobState.FAILED, error_code="empty"
    )
    assert encoder_default() == new


def test_an_roi_drawn_while_the_default_is_replaced_searches_with_the_next(world, encoder):
    old_roi = world.embedded(world.canvas(world.case("A1")))
    old = encoder_default()
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    new = encoder_register(facts=facts, is_default=True)
    drawn = world.roi(world.canvas(world.case("A2")))
    (job,) = [job for job in jobs() if job.target_id == drawn.pk]
    job_run(job.pk)
    assert encoder_for(drawn) == new
    assert encoder_for(old_roi) == old
    assert rois_embedded([drawn.pk]) == {drawn.pk}


def test_slides_and_mosaics_have_separate_encoders_and_searches(world):
    slide = world.embedded(world.canvas(world.case("A1")))
    other_slide = world.embedded(world.canvas(world.case("A2")))
    mosaic = world.embedded(world.canvas(world.case("B1"), kind="mosaic"))
    other_mosaic = world.embedded(world.canvas(world.case("B2"), kind="mosaic"))
    assert encoder_for(slide).name == "box"
    assert encoder_for(mosaic).name == "scope"
    for roi, other in ((slide, other_slide), (mosaic, other_mosaic)):
        query = SimilarQuery(roi=roi, encoder=encoder_for(roi))
        assert [hit.roi for hit in similar_search(world.user, query).hits] == [other]


def test_a_new_default_of_one_kind_does_not_change_the_other(world, encoder):
    mosaic = world.embedded(world.canvas(world.case("B1"), kind="mosaic"))
    world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    encoder_register(facts=EncoderIdentity("box", "2", "abc", 4, "histology"), is_default=True)
    world.run_jobs()
    assert encoder_default("endoscopy").name == "scope"
    assert encoder_default().version == "2"
    assert Embedding.objects.filter(roi=mosaic).count() == 1  # not embedded by the new one


def test_the_first_endoscopy_encoder_takes_over_what_another_kind_embedded(world):
    slide = world.embedded(world.canvas(world.case("A1")))
    histology = encoder_for(slide)
    canvas = world.canvas(world.case("B1"), kind="mosaic")
    roi = world.roi(canvas)
    Job.objects.all().delete()
    Embedding.objects.create(
        lab=world.lab, encoder=histology, roi=roi, canvas=canvas, roi_version=1, vector=bytes(16)
    )
    facts = EncoderIdentity("scope", "1", "abc", 4, "endoscopy")
    endoscopy = encoder_register(facts=facts, is_default=True)
    world.run_jobs()
    current = Embedding.objects.filter(roi=roi, superseded_at__isnull=True)
    assert [row.encoder for row in current] == [endoscopy]


@pytest.fixture
def waiting(world, encoder, settings):
    """An archive with a default, and a next encoder that has embedded it and needs a word."""
    settings.TESSERA_ENCODER_APPROVAL = True
    world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    return encoder_register(facts=facts, is_default=True)


def test_the_next_encoder_waits_for_approval_if_required(world, waiting):
    old = encoder_default()
    with pytest.raises(ConflictError, match="1 jobs"):
        encoder_approve("histology")
    world.run_jobs()
    assert encoder_default() == old and encoder_next("histology") == waiting
    assert encoder_approve("histology") == waiting
    assert encoder_default() == waiting
    with pytest.raises(ConflictError, match="waiting"):
        encoder_approve("histology")


def test_a_rejected_encoder_retains_its_embeddings(world, waiting):
    world.run_jobs()
    old = encoder_default()
    assert encoder_reject("histology") == waiting
    assert encoder_next("histology") is None
    assert encoder_default() == old and waiting.embeddings.count() == 1
    with pytest.raises(ConflictError, match="waiting"):
        encoder_reject("histology")


def test_the_encoder_of_a_kind_is_one_setting(world, encoder, settings):
    settings.TESSERA_ENCODERS = {"histology": "endoscopy", "endoscopy": "default"}
    roi = world.embedded(world.canvas(world.case("A1")))
    assert encoder_for(roi).name == "scope"

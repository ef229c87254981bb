"""Encoders: the default, and what takes its place."""

from __future__ import annotations

import pytest

from portal.annotations.selectors import rois_embedded
from portal.core.errors import ConflictError
from portal.jobs import ledger
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.retrieval import selectors, services
from portal.retrieval.models import Embedding, Encoder
from portal.retrieval.selectors import SimilarQuery, similar_search
from portal.retrieval.services import EncoderFacts
from tests.portal.retrieval.conftest import jobs


def test_a_new_default_encoder_embeds_every_lab_again(world, encoder):
    roi = world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    old = Encoder.objects.get(is_default=True)
    new = services.encoder_register(facts=facts, is_default=True)
    assert new.is_next and selectors.encoder_default() == old  # searched until the new is complete
    assert rois_embedded([roi.pk]) == {roi.pk}
    world.run_jobs()
    assert list(Encoder.objects.filter(is_default=True)) == [new]
    assert set(Embedding.objects.filter(roi=roi).values_list("encoder__version", flat=True)) == {
        "1",
        "2",
    }
    assert rois_embedded([roi.pk]) == {roi.pk}
    assert services.encoder_register(facts=facts, is_default=True) == new
    assert len(jobs("lab_embed")) == 1


def test_the_new_default_waits_for_every_roi_and_not_for_one_without_tissue(world, encoder):
    first = world.embedded(world.canvas(world.case("A1")))
    second = world.embedded(world.canvas(world.case("A2")))
    old = selectors.encoder_default()
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    new = services.encoder_register(facts=facts, is_default=True)
    (lab_job,) = jobs("lab_embed")
    job_run(lab_job.pk)
    todo = [job for job in jobs("canvas_embed") if not job.has_ended]
    assert {job.target_id for job in todo} == {first.canvas_id, second.canvas_id}
    job_run(todo[0].pk)
    assert selectors.encoder_default() == old
    ledger.end(Job.objects.filter(pk=todo[1].pk), todo[1].pk, JobState.FAILED, error_code="empty")
    assert selectors.encoder_default() == new


def test_an_roi_drawn_while_the_default_is_replaced_searches_with_the_next(world, encoder):
    old_roi = world.embedded(world.canvas(world.case("A1")))
    old = selectors.encoder_default()
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    new = services.encoder_register(facts=facts, is_default=True)
    drawn = world.roi(world.canvas(world.case("A2")))
    (job,) = [job for job in jobs() if job.target_id == drawn.pk]
    job_run(job.pk)
    assert selectors.encoder_for(drawn) == new
    assert selectors.encoder_for(old_roi) == old
    assert rois_embedded([drawn.pk]) == {drawn.pk}


def test_slides_and_mosaics_have_encoders_and_searches_of_their_own(world):
    slide = world.embedded(world.canvas(world.case("A1")))
    other_slide = world.embedded(world.canvas(world.case("A2")))
    mosaic = world.embedded(world.canvas(world.case("B1"), kind="mosaic"))
    other_mosaic = world.embedded(world.canvas(world.case("B2"), kind="mosaic"))
    assert selectors.encoder_for(slide).name == "box"
    assert selectors.encoder_for(mosaic).name == "scope"
    for roi, other in ((slide, other_slide), (mosaic, other_mosaic)):
        query = SimilarQuery(roi=roi, encoder=selectors.encoder_for(roi))
        assert [hit.roi for hit in similar_search(world.user, query).hits] == [other]


def test_a_new_default_of_one_kind_leaves_the_other_kind_alone(world, encoder):
    mosaic = world.embedded(world.canvas(world.case("B1"), kind="mosaic"))
    world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    services.encoder_register(
        facts=EncoderFacts("box", "2", "abc", 4, "histology"), is_default=True
    )
    world.run_jobs()
    assert selectors.encoder_default("endoscopy").name == "scope"
    assert selectors.encoder_default().version == "2"
    assert Embedding.objects.filter(roi=mosaic).count() == 1  # not embedded by the new one


def test_the_first_endoscopy_encoder_takes_over_what_another_kind_embedded(world):
    slide = world.embedded(world.canvas(world.case("A1")))
    histology = selectors.encoder_for(slide)
    canvas = world.canvas(world.case("B1"), kind="mosaic")
    roi = world.roi(canvas)
    Job.objects.all().delete()
    Embedding.objects.create(
        lab=world.lab, encoder=histology, roi=roi, canvas=canvas, roi_version=1, vector=bytes(16)
    )
    facts = EncoderFacts("scope", "1", "abc", 4, "endoscopy")
    endoscopy = services.encoder_register(facts=facts, is_default=True)
    world.run_jobs()
    current = Embedding.objects.filter(roi=roi, superseded_at__isnull=True)
    assert [row.encoder for row in current] == [endoscopy]


@pytest.fixture
def waiting(world, encoder, settings):
    """An archive with a default, and a next encoder that has embedded it and needs a word."""
    settings.TESSERA_ENCODER_APPROVAL = True
    world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    return services.encoder_register(facts=facts, is_default=True)


def test_where_a_word_is_asked_for_the_next_encoder_waits_for_it(world, waiting):
    old = selectors.encoder_default()
    with pytest.raises(
        ConflictError, match="has not finished embedding the archive: 1 jobs are left"
    ):
        services.encoder_approve("histology")
    world.run_jobs()
    assert selectors.encoder_default() == old and selectors.encoder_next("histology") == waiting
    assert services.encoder_approve("histology") == waiting
    assert selectors.encoder_default() == waiting
    with pytest.raises(ConflictError, match="No histology encoder is waiting"):
        services.encoder_approve("histology")


def test_a_rejected_encoder_waits_no_longer_and_keeps_its_embeddings(world, waiting):
    world.run_jobs()
    old = selectors.encoder_default()
    assert services.encoder_reject("histology") == waiting
    assert selectors.encoder_next("histology") is None
    assert selectors.encoder_default() == old and waiting.embeddings.count() == 1
    with pytest.raises(ConflictError, match="No histology encoder is waiting"):
        services.encoder_reject("histology")


def test_the_encoder_of_a_kind_is_one_setting(world, encoder, settings):
    settings.TESSERA_ENCODERS = {"histology": "endoscopy", "endoscopy": "default"}
    roi = world.embedded(world.canvas(world.case("A1")))
    assert selectors.encoder_for(roi).name == "scope"

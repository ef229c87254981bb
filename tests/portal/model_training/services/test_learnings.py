"""A metric learned from a lab's archive: verdict, promotion, what searches go by, the way back."""

from __future__ import annotations

import numpy as np
import pytest

from portal.archive.models import Modality
from portal.core.errors import ConflictError, NotFoundError
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.selectors.embeddings import vector_of
from portal.embeddings.selectors.encoders import encoder_default, encoders_visible
from portal.embeddings.selectors.lab_encoders import embeddings_to_map, mapped
from portal.embeddings.services.embeddings import embeddings_supersede
from portal.embeddings.services.encoders import EncoderIdentity, encoder_register
from portal.embeddings.services.mapped_vectors import mapped_vectors_add
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.model_training.models import Learning
from portal.model_training.selectors.learnings import learning_get
from portal.model_training.selectors.results import LearningResult
from portal.model_training.selectors.training_data import training_data
from portal.model_training.services.learnings import (
    learning_promote,
    learning_roll_back,
    learning_submit,
)
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create
from portal.search.models import Judgement
from portal.search.services.similar_cases import roi_search
from tests.portal.embedded_rois import jobs
from tests.portal.model_training.archives import (
    embedded,
    encoder_registered,
    filled,
    learned,
    promoted,
)

HISTOLOGY = Modality.HISTOLOGY


def search(user, roi, **options):
    plain = {"k": 10, "expand": 0, "diffuse": False}
    return roi_search(roi=roi, user=user, options={**plain, **options})


def hit_ids(result):
    return [hit.roi.pk for hit in result.hits]


def test_labels_that_can_be_learned_make_an_encoder_of_the_lab(world, manager):
    filled(world)
    learning = learned(world, manager)
    result = LearningResult.from_json(learning.result)
    assert learning.is_better
    assert (result.regions, result.patients, result.test_patients) == (60, 15, 5)
    assert result.learned_patients + result.test_patients == 15
    assert {change.label for change in result.changes} == {"large", "small"}
    assert result.measures[0].low > 0
    lab_encoder, base = learning.encoder, encoder_default()
    assert (lab_encoder.lab, lab_encoder.base, lab_encoder.dim, lab_encoder.kind) == (
        world.lab,
        base,
        4,
        "histology",
    )
    assert not lab_encoder.is_default and not lab_encoder.is_next
    assert lab_encoder.calibration is None  # 60 regions hold too few pairs that are unrelated
    assert learning.use == "no"
    assert [job.state for job in jobs("metric_learn")] == [JobState.SUCCEEDED]
    assert LearningResult.from_json(result.as_json()) == result


def test_random_labels_give_no_better_metric(world, manager):
    filled(world, learnable=False)
    learning = learned(world, manager)
    assert learning.is_better is False
    with pytest.raises(ConflictError, match="not better"):
        learning_promote(learning=learning, user=manager)
    assert not Encoder.objects.filter(is_next=True).exists()
    assert jobs("metric_embed") == []


def test_only_judgements_are_learned_from(world, manager, annotator):
    rois = [roi for of_canvas in filled(world, labelled=False, each=4) for roi in of_canvas]
    rng = np.random.default_rng(1)
    for at, roi in enumerate(rois):
        for other in rng.choice(len(rois), 8, replace=False):
            if other // 4 != at // 4:
                kind = "alike" if other % 2 == at % 2 else "unlike"
                Judgement.objects.create(
                    lab=world.lab, roi=roi, other=rois[other], user=annotator, verdict=kind
                )
    learning = learned(world, manager)
    result = LearningResult.from_json(learning.result)
    assert (result.judges_by, result.labels, result.changes) == ("agreement", 0, ())
    assert learning.is_better


def test_too_little_data_is_reported_before_a_job_is_created(world, manager):
    with pytest.raises(ConflictError) as error:
        learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager)
    assert error.value.code == "too-little-data"
    filled(world, patients=8)
    with pytest.raises(ConflictError, match=r"14 patients .*8 patients"):
        learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager)
    assert not Job.objects.exists() and not Learning.objects.exists()


def test_simultaneous_requests_get_one_learning(world, manager):
    filled(world)
    first = learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager)
    assert learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager) == first
    assert len(jobs("metric_learn")) == 1


def test_searches_use_the_old_encoder_until_all_is_embedded(world, manager):
    rois, learning = promoted(world, manager)
    query, base, lab_encoder = rois[0][0], learning.base, learning.encoder
    before = search(manager, query)
    assert before.query.encoder == base
    assert learning_get(manager, learning.pk).use == "preparing"
    world.run_jobs()
    assert learning_get(manager, learning.pk).use == "yes"
    after = search(manager, query)
    assert after.query.encoder == lab_encoder
    vectors = {row.encoder_id: vector_of(row) for row in Embedding.objects.filter(roi=query)}
    np.testing.assert_allclose(
        vectors[lab_encoder.pk], mapped(lab_encoder, vectors[base.pk][None])[0], rtol=1e-6
    )
    assert Embedding.objects.filter(encoder=lab_encoder).count() == 60

    def right(result):
        return sum(hit.roi.label_id == query.label_id for hit in result.hits)

    assert right(after) > right(before)


def test_old_answers_can_be_repeated_by_naming_their_encoder(world, manager):
    rois, learning = promoted(world, manager)
    before = search(manager, rois[0][0])
    world.run_jobs()
    again = roi_search(
        roi=rois[0][0],
        user=manager,
        options={"k": 10, "expand": 0, "diffuse": False},
        encoder_id=learning.base_id,
    )
    assert hit_ids(again) == hit_ids(before)
    assert [hit.distance for hit in again.hits] == [hit.distance for hit in before.hits]
    learning_roll_back(learning=learning, user=manager)
    now = search(manager, rois[0][0])
    assert now.query.encoder == learning.base
    assert hit_ids(now) == hit_ids(before)
    learned_again = roi_search(
        roi=rois[0][0], user=manager, options={"k": 10}, encoder_id=learning.encoder_id
    )
    assert learned_again.query.encoder == learning.encoder


def test_new_regions_are_searched_by_the_trained_encoder_at_once(world, manager):
    rois, learning = promoted(world, manager)
    world.run_jobs()
    drawn = world.embedded(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    embedding = Embedding.objects.get(roi=drawn, encoder=learning.encoder)
    assert embedding.roi_version == drawn.version
    assert drawn.pk in hit_ids(search(manager, rois[0][0], k=60))
    assert search(manager, drawn).query.encoder == learning.encoder


def test_regions_drawn_while_the_archive_is_embedded_are_in_it(world, manager):
    _, learning = promoted(world, manager)
    drawn = world.roi(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    embedded(drawn, learning.base)
    assert Embedding.objects.filter(roi=drawn, encoder=learning.encoder).exists()
    world.run_jobs()
    assert Embedding.objects.filter(roi=drawn, encoder=learning.encoder).count() == 1
    assert not embeddings_to_map(learning.encoder).exists()


def test_redrawn_and_deleted_regions_leave_the_lab_encoder_too(world, manager):
    rois, _ = promoted(world, manager)
    world.run_jobs()
    embeddings_supersede(roi_ids=[rois[1][0].pk])
    assert rois[1][0].pk not in hit_ids(search(manager, rois[0][0], k=60))


def test_a_killed_job_continues_after_its_last_part(world, manager, monkeypatch):
    _, learning = promoted(world, manager)
    monkeypatch.setattr("portal.embeddings.services.mapped_vectors.PART_ROWS", 25)
    (job,) = jobs("metric_embed")
    parts = []
    plain = mapped_vectors_add

    def dies(encoder):
        if len(parts) == 1:
            parts.append(0)
            raise KeyboardInterrupt
        parts.append(plain(encoder))
        return parts[-1]

    monkeypatch.setattr("portal.embeddings.tasks.lab_encoders.mapped_vectors_add", dies)
    with pytest.raises(KeyboardInterrupt):
        job_run(job.pk)
    embeddings = Embedding.objects.filter(encoder=learning.encoder)
    assert embeddings.count() == 25
    assert not Encoder.objects.get(pk=learning.encoder_id).is_default
    Job.objects.filter(pk=job.pk).update(state=JobState.QUEUED, lease_token=None)
    world.run_jobs()
    assert parts == [25, 0, 25, 10, 0]
    assert embeddings.count() == 60
    assert Encoder.objects.get(pk=learning.encoder_id).is_default


def test_a_killed_learning_starts_again_and_creates_one_encoder(world, manager, monkeypatch):
    filled(world)
    learning = learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager)
    with monkeypatch.context() as patch:

        def dies(**_):
            raise KeyboardInterrupt

        patch.setattr("portal.model_training.tasks.metrics.learning_metric_save", dies)
        with pytest.raises(KeyboardInterrupt):
            job_run(learning.job_id)
    assert not Encoder.objects.filter(lab=world.lab).exists()
    Job.objects.filter(pk=learning.job_id).update(state=JobState.QUEUED, lease_token=None)
    world.run_jobs()
    assert Encoder.objects.filter(lab=world.lab).count() == 1
    assert learning_get(manager, learning.pk).is_better


def test_a_cancelled_learning_creates_no_encoder(world, manager):
    filled(world)
    learning = learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager)
    Job.objects.filter(pk=learning.job_id).update(cancel_requested=True)
    world.run_jobs()
    learning.refresh_from_db()
    assert learning.result is None and learning.encoder is None
    assert Job.objects.get(pk=learning.job_id).state == JobState.CANCELLED
    assert learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager) != learning


def test_an_encoder_rolled_back_before_completion_is_never_activated(world, manager):
    _, learning = promoted(world, manager)
    learning_roll_back(learning=learning, user=manager)
    world.run_jobs()
    assert learning_get(manager, learning.pk).use == "no"
    with pytest.raises(ConflictError, match="use it"):
        learning_roll_back(learning=learning, user=manager)
    learning_promote(learning=learning, user=manager)
    world.run_jobs()
    learning = learning_get(manager, learning.pk)
    assert learning.use == "yes"
    with pytest.raises(ConflictError, match="already"):
        learning_promote(learning=learning, user=manager)


def test_regions_drawn_after_a_rollback_are_embedded_on_promotion(world, manager):
    rois, learning = promoted(world, manager)
    world.run_jobs()
    learning_roll_back(learning=learning, user=manager)
    drawn = world.embedded(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    assert not Embedding.objects.filter(roi=drawn, encoder=learning.encoder).exists()
    learning_promote(learning=learning, user=manager)
    world.run_jobs()
    assert drawn.pk in hit_ids(search(manager, rois[0][0], k=60))


def test_a_new_shared_encoder_deactivates_maps_of_the_old_one(world, manager, encoder):
    _, learning = promoted(world, manager)
    world.run_jobs()
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    new = encoder_register(facts=facts, is_default=True)
    with pytest.raises(ConflictError) as error:
        learning_submit(lab=world.lab, kind=HISTOLOGY, user=manager)
    assert error.value.code == "encoder-changing"
    assert learning_get(manager, learning.pk).use == "yes"
    world.run_jobs()
    assert encoder_default() == new
    assert learning_get(manager, learning.pk).use == "no"
    with pytest.raises(ConflictError) as error:
        learning_promote(learning=learning, user=manager)
    assert error.value.code == "encoder-changing"


def test_another_lab_neither_sees_nor_uses_a_learned_metric(world, manager, stranger, other_lab):
    _, learning = promoted(world, manager)
    theirs = world.roi(world.canvas(world.case("S1", "s", lab=other_lab)), user=stranger)
    embedded(theirs, learning.base)
    world.run_jobs()
    assert search(stranger, theirs).query.encoder == learning.base
    assert learning.encoder not in encoders_visible(stranger)
    with pytest.raises(NotFoundError):
        roi_search(roi=theirs, user=stranger, options={}, encoder_id=learning.encoder_id)
    assert not Embedding.objects.filter(roi=theirs, encoder=learning.encoder).exists()


def test_regions_of_a_blind_reading_are_no_training_data(world, manager, annotator, reviewer):
    rois = filled(world, user=manager)
    base = encoder_registered()
    canvas = rois[0][0].canvas
    study = study_create(lab=world.lab, user=manager, name="Blind")
    plan = ReadingPlan(canvases=[canvas], people=[annotator, reviewer])
    readings_assign(study=study, user=manager, plan=plan)
    drawn = world.roi(canvas, 5, 5, 44)
    embedded(drawn, base)
    used = training_data(world.lab.pk, base).rois
    assert drawn.pk not in used and rois[0][0].pk in used
    assert len(used) == 60


def test_training_data_takes_three_queries(world, django_assert_num_queries):
    filled(world, patients=3)
    base = encoder_registered()
    with django_assert_num_queries(3):
        few = training_data(world.lab.pk, base)
    assert len(few.rois) == 12


def test_the_query_count_with_a_lab_encoder_does_not_grow_with_regions(
    world, manager, django_assert_max_num_queries
):
    rois, learning = promoted(world, manager)
    world.run_jobs()
    search(manager, rois[0][0])
    with django_assert_max_num_queries(20):
        assert search(manager, rois[0][0]).query.encoder == learning.encoder

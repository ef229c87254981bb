"""A metric learned from a lab's archive: verdict, promotion, what searches go by, the way back."""

from __future__ import annotations

import numpy as np
import pytest

from portal.core.errors import ConflictError, ForbiddenError, NotFoundError
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.reading.services import WantedReadings, readings_assign, study_create
from portal.retrieval import selectors, services
from portal.retrieval.models import Embedding, Encoder, EncoderKind, Judgement, Learning
from portal.retrieval.selectors import LearningResult
from portal.retrieval.services import EncoderFacts
from tests.portal.retrieval.archives import embedded, encoder_registered, filled, learned, promoted
from tests.portal.retrieval.conftest import jobs

HISTOLOGY = EncoderKind.HISTOLOGY


def asked(user, roi, **options):
    plain = {"k": 10, "expand": 0, "diffuse": False}
    return services.similar_or_embed(roi=roi, user=user, options={**plain, **options})


def found(result):
    return [hit.roi.pk for hit in result.hits]


def test_labels_that_can_be_learned_make_an_encoder_of_the_lab(world, manager):
    filled(world)
    learning = learned(world, manager)
    result = LearningResult.of_json(learning.result)
    assert learning.is_better
    assert (result.regions, result.patients, result.kept_aside) == (60, 15, 5)
    assert result.learned_patients + result.kept_aside == 15
    assert {one.label for one in result.changes} == {"large", "small"}
    assert result.measures[0].low > 0
    own, base = learning.encoder, selectors.encoder_default()
    assert (own.lab, own.base, own.dim, own.kind) == (world.lab, base, 4, "histology")
    assert not own.is_default and not own.is_next
    assert own.calibration is None  # 60 regions hold too few pairs that are unrelated
    assert learning.use == "no"
    assert [job.state for job in jobs("metric_learn")] == [JobState.SUCCEEDED]
    assert LearningResult.of_json(result.as_json()) == result


def test_labels_that_vectors_do_not_know_are_not_better_and_are_refused(world, manager):
    filled(world, learnable=False)
    learning = learned(world, manager)
    assert learning.is_better is False
    with pytest.raises(ConflictError, match="not better"):
        services.learning_promote(learning=learning, user=manager)
    assert not Encoder.objects.filter(is_next=True).exists()
    assert jobs("metric_embed") == []


def test_judgements_alone_are_learned_from(world, manager, annotator):
    rois = [roi for own in filled(world, labelled=False, each=4) for roi in own]
    rng = np.random.default_rng(1)
    for at, roi in enumerate(rois):
        for other in rng.choice(len(rois), 8, replace=False):
            if other // 4 != at // 4:
                alike = "alike" if other % 2 == at % 2 else "unlike"
                Judgement.objects.create(
                    lab=world.lab, roi=roi, other=rois[other], user=annotator, verdict=alike
                )
    learning = learned(world, manager)
    result = LearningResult.of_json(learning.result)
    assert (result.judges_by, result.labels, result.changes) == ("agreement", 0, ())
    assert learning.is_better


def test_too_little_is_said_before_a_job_is_made(world, manager):
    with pytest.raises(ConflictError, match="No region is embedded"):
        services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager)
    filled(world, patients=8)
    with pytest.raises(ConflictError, match=r"14 patients or more in all\. Found: 8 patients"):
        services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager)
    assert not Job.objects.exists() and not Learning.objects.exists()


def test_only_managers_learn_promote_and_roll_back(world, manager, annotator, stranger):
    filled(world)
    for user in (annotator, stranger):
        with pytest.raises(ForbiddenError):
            services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=user)
    learning = learned(world, manager)
    for act in (services.learning_promote, services.learning_roll_back):
        with pytest.raises(ForbiddenError):
            act(learning=learning, user=annotator)
    with pytest.raises(NotFoundError):
        selectors.learning_get(stranger, learning.pk)


def test_two_who_ask_at_once_get_one(world, manager):
    filled(world)
    first = services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager)
    assert services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager) == first
    assert len(jobs("metric_learn")) == 1


def test_searches_go_on_with_the_old_one_until_all_is_embedded(world, manager):
    rois, learning = promoted(world, manager)
    query, base, own = rois[0][0], learning.base, learning.encoder
    before = asked(manager, query)
    assert before.query.encoder == base
    assert selectors.learning_get(manager, learning.pk).use == "preparing"
    world.run_jobs()
    assert selectors.learning_get(manager, learning.pk).use == "yes"
    after = asked(manager, query)
    assert after.query.encoder == own
    vectors = {
        row.encoder_id: selectors.vector_of(row) for row in Embedding.objects.filter(roi=query)
    }
    np.testing.assert_allclose(
        vectors[own.pk], selectors.mapped(own, vectors[base.pk][None])[0], rtol=1e-6
    )
    assert Embedding.objects.filter(encoder=own).count() == 60

    def right(result):
        return sum(hit.roi.label_id == query.label_id for hit in result.hits)

    assert right(after) > right(before)


def test_old_answers_can_be_repeated_by_naming_their_encoder(world, manager):
    rois, learning = promoted(world, manager)
    before = asked(manager, rois[0][0])
    world.run_jobs()
    again = services.similar_or_embed(
        roi=rois[0][0],
        user=manager,
        options={"k": 10, "expand": 0, "diffuse": False},
        encoder_id=learning.base_id,
    )
    assert found(again) == found(before)
    assert [hit.distance for hit in again.hits] == [hit.distance for hit in before.hits]
    services.learning_roll_back(learning=learning, user=manager)
    now = asked(manager, rois[0][0])
    assert now.query.encoder == learning.base
    assert found(now) == found(before)
    learned_again = services.similar_or_embed(
        roi=rois[0][0], user=manager, options={"k": 10}, encoder_id=learning.encoder_id
    )
    assert learned_again.query.encoder == learning.encoder


def test_new_regions_are_found_by_the_own_encoder_at_once(world, manager):
    rois, learning = promoted(world, manager)
    world.run_jobs()
    drawn = world.embedded(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    own = Embedding.objects.get(roi=drawn, encoder=learning.encoder)
    assert own.roi_version == drawn.version
    assert drawn.pk in found(asked(manager, rois[0][0], k=60))
    assert asked(manager, drawn).query.encoder == learning.encoder


def test_regions_drawn_while_the_archive_is_embedded_are_in_it(world, manager):
    _, learning = promoted(world, manager)
    drawn = world.roi(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    embedded(drawn, learning.base)
    assert Embedding.objects.filter(roi=drawn, encoder=learning.encoder).exists()
    world.run_jobs()
    assert Embedding.objects.filter(roi=drawn, encoder=learning.encoder).count() == 1
    assert not selectors.embeddings_to_map(learning.encoder).exists()


def test_redrawn_and_deleted_regions_leave_the_own_encoder_too(world, manager):
    rois, _ = promoted(world, manager)
    world.run_jobs()
    services.embeddings_supersede(roi_ids=[rois[1][0].pk])
    assert rois[1][0].pk not in found(asked(manager, rois[0][0], k=60))


def test_a_job_killed_in_between_goes_on_where_it_was(world, manager, monkeypatch):
    _, learning = promoted(world, manager)
    monkeypatch.setattr("portal.retrieval.services.learning.mapping.PART_ROWS", 25)
    (job,) = jobs("metric_embed")
    parts = []
    plain = services.metric_part

    def dies(encoder):
        if len(parts) == 1:
            parts.append(0)
            raise KeyboardInterrupt
        parts.append(plain(encoder))
        return parts[-1]

    monkeypatch.setattr("portal.retrieval.services.metric_part", dies)
    with pytest.raises(KeyboardInterrupt):
        job_run(job.pk)
    own = Embedding.objects.filter(encoder=learning.encoder)
    assert own.count() == 25
    assert not Encoder.objects.get(pk=learning.encoder_id).is_default
    Job.objects.filter(pk=job.pk).update(state=JobState.QUEUED, lease_token=None)
    world.run_jobs()
    assert parts == [25, 0, 25, 10, 0]
    assert own.count() == 60
    assert Encoder.objects.get(pk=learning.encoder_id).is_default


def test_a_learning_killed_in_between_begins_anew_and_leaves_one_encoder(
    world, manager, monkeypatch
):
    filled(world)
    learning = services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager)
    with monkeypatch.context() as patch:

        def dies(**_):
            raise KeyboardInterrupt

        patch.setattr("portal.retrieval.services.learning_save", dies)
        with pytest.raises(KeyboardInterrupt):
            job_run(learning.job_id)
    assert not Encoder.objects.filter(lab=world.lab).exists()
    Job.objects.filter(pk=learning.job_id).update(state=JobState.QUEUED, lease_token=None)
    world.run_jobs()
    assert Encoder.objects.filter(lab=world.lab).count() == 1
    assert selectors.learning_get(manager, learning.pk).is_better


def test_a_learning_that_was_cancelled_leaves_nothing(world, manager):
    filled(world)
    learning = services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager)
    Job.objects.filter(pk=learning.job_id).update(cancel_requested=True)
    world.run_jobs()
    learning.refresh_from_db()
    assert learning.result is None and learning.encoder is None
    assert Job.objects.get(pk=learning.job_id).state == JobState.CANCELLED
    assert services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager) != learning


def test_rolled_back_before_it_was_complete_it_never_takes_over(world, manager):
    _, learning = promoted(world, manager)
    services.learning_roll_back(learning=learning, user=manager)
    world.run_jobs()
    assert selectors.learning_get(manager, learning.pk).use == "no"
    with pytest.raises(ConflictError, match="do not use it"):
        services.learning_roll_back(learning=learning, user=manager)
    services.learning_promote(learning=learning, user=manager)
    world.run_jobs()
    learning = selectors.learning_get(manager, learning.pk)
    assert learning.use == "yes"
    with pytest.raises(ConflictError, match="already"):
        services.learning_promote(learning=learning, user=manager)


def test_what_is_drawn_after_a_way_back_is_embedded_when_it_is_promoted_again(world, manager):
    rois, learning = promoted(world, manager)
    world.run_jobs()
    services.learning_roll_back(learning=learning, user=manager)
    drawn = world.embedded(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    assert not Embedding.objects.filter(roi=drawn, encoder=learning.encoder).exists()
    services.learning_promote(learning=learning, user=manager)
    world.run_jobs()
    assert drawn.pk in found(asked(manager, rois[0][0], k=60))


def test_a_new_common_encoder_ends_the_use_of_what_maps_the_old_one(world, manager, encoder):
    _, learning = promoted(world, manager)
    world.run_jobs()
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    new = services.encoder_register(facts=facts, is_default=True)
    with pytest.raises(ConflictError, match="changing its encoder"):
        services.learning_ask(lab=world.lab, kind=HISTOLOGY, user=manager)
    assert selectors.learning_get(manager, learning.pk).use == "yes"
    world.run_jobs()
    assert selectors.encoder_default() == new
    assert selectors.learning_get(manager, learning.pk).use == "no"
    with pytest.raises(ConflictError, match="no longer makes"):
        services.learning_promote(learning=learning, user=manager)


def test_another_lab_neither_sees_nor_uses_it_and_keeps_its_answers(
    world, manager, stranger, other_lab
):
    _, learning = promoted(world, manager)
    theirs = world.roi(world.canvas(world.case("S1", "s", lab=other_lab)), user=stranger)
    embedded(theirs, learning.base)
    world.run_jobs()
    assert asked(stranger, theirs).query.encoder == learning.base
    assert learning.encoder not in selectors.encoders_visible(stranger)
    with pytest.raises(NotFoundError):
        services.similar_or_embed(
            roi=theirs, user=stranger, options={}, encoder_id=learning.encoder_id
        )
    assert not Embedding.objects.filter(roi=theirs, encoder=learning.encoder).exists()


def test_what_is_drawn_in_a_blind_reading_is_not_learned_from(world, manager, annotator, reviewer):
    rois = filled(world, user=manager)
    base = encoder_registered()
    canvas = rois[0][0].canvas
    study = study_create(lab=world.lab, user=manager, name="Blind")
    wanted = WantedReadings(canvases=[canvas], people=[annotator, reviewer])
    readings_assign(study=study, user=manager, wanted=wanted)
    drawn = world.roi(canvas, 5, 5, 44)
    embedded(drawn, base)
    used = selectors.lab_material(world.lab.pk, base).rois
    assert drawn.pk not in used and rois[0][0].pk in used
    assert len(used) == 60


def test_the_material_takes_three_queries_whatever_there_is(world, django_assert_num_queries):
    filled(world, patients=3)
    base = encoder_registered()
    with django_assert_num_queries(3):
        few = selectors.lab_material(world.lab.pk, base)
    assert len(few.rois) == 12


def test_a_search_with_the_own_encoder_asks_no_query_a_region(
    world, manager, django_assert_max_num_queries
):
    rois, learning = promoted(world, manager)
    world.run_jobs()
    asked(manager, rois[0][0])
    with django_assert_max_num_queries(20):
        assert asked(manager, rois[0][0]).query.encoder == learning.encoder

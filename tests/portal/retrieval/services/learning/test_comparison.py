"""What is learned while a lab has an encoder of its own in use: compared with that, and back."""

from __future__ import annotations

import numpy as np
import pytest

from portal.core.errors import ConflictError
from portal.retrieval import selectors, services
from portal.retrieval.models import Embedding, Encoder, Learning
from portal.retrieval.selectors import LearningResult
from tests.portal.retrieval.archives import filled, learned, promoted


def result_of(learning):
    return LearningResult.of_json(learning.result)


def use_of(manager, learning):
    return selectors.learning_get(manager, learning.pk).use


def put_over(world, manager, first):
    """A second metric, taken to be better than the first, in its place."""
    second = learned(world, manager)
    assert second.compared_with == first.encoder
    Learning.objects.filter(pk=second.pk).update(is_better=True)
    services.learning_promote(learning=second, user=manager)
    world.run_jobs()
    assert (use_of(manager, first), use_of(manager, second)) == ("no", "yes")
    return second


def own_in_use(world, base, rois):
    """An encoder of the lab whose one number tells the labels, of these regions."""
    own = Encoder.objects.create(
        name="own",
        version="1",
        config_hash="own",
        dim=1,
        lab=world.lab,
        base=base,
        is_trained=True,
        is_default=True,
    )
    large = rois[0].label_id
    Embedding.objects.bulk_create(
        Embedding(
            encoder=own,
            roi=roi,
            roi_version=roi.version,
            lab_id=roi.lab_id,
            canvas_id=roi.canvas_id,
            vector=np.array([roi.label_id == large], "<f4").tobytes(),
        )
        for roi in rois
    )
    return own


def test_the_same_metric_learned_once_more_is_no_better_than_the_one_in_use(world, manager):
    _, first = promoted(world, manager)
    assert first.compared_with == first.base
    world.run_jobs()
    second = learned(world, manager)
    assert (second.base, second.compared_with) == (first.base, first.encoder)
    assert second.is_better is False
    found, before = result_of(second), result_of(first)
    assert [one.old for one in found.measures] == pytest.approx(
        [one.new for one in before.measures], abs=1e-6
    )
    assert all(one.gain == pytest.approx(0, abs=1e-6) for one in found.measures)
    assert all(one.better == one.worse == 0 for one in found.changes)
    assert all(one.old == one.new for one in found.examples)
    with pytest.raises(ConflictError, match="not better"):
        services.learning_promote(learning=second, user=manager)


def test_a_metric_is_compared_with_the_labs_own_encoder_on_what_that_can_find(world, manager):
    rois = [roi for own in filled(world) for roi in own]
    base = selectors.encoder_default()
    own = own_in_use(world, base, rois[1:])  # one region has no vector of it yet
    learning = learned(world, manager)
    assert (learning.base, learning.compared_with) == (base, own)
    found = result_of(learning)
    assert found.regions == 59
    assert found.measures[0].old == 1.0  # it knows the labels
    assert learning.is_better is False
    labels = {str(roi.pk): roi.label_id for roi in rois}
    assert all({labels[key] for key in one.old} == {labels[one.roi]} for one in found.examples)


def test_what_was_compared_with_another_than_is_in_use_now_is_refused(world, manager):
    filled(world)
    first, second = learned(world, manager), learned(world, manager)
    services.learning_promote(learning=first, user=manager)
    world.run_jobs()
    with pytest.raises(ConflictError, match=f"compared with {first.base}, but .* now use {first}"):
        services.learning_promote(learning=second, user=manager)
    services.learning_roll_back(learning=first, user=manager)
    services.learning_promote(learning=second, user=manager)
    world.run_jobs()
    assert use_of(manager, second) == "yes"


def test_a_way_back_leads_to_the_metric_that_was_in_use_before(world, manager):
    _, first = promoted(world, manager)
    world.run_jobs()
    second = put_over(world, manager, first)
    services.learning_roll_back(learning=second, user=manager)  # it lacks nothing: at once
    assert (use_of(manager, first), use_of(manager, second)) == ("yes", "no")
    services.learning_promote(learning=second, user=manager)
    world.run_jobs()
    drawn = world.embedded(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    services.learning_roll_back(learning=second, user=manager)
    assert selectors.encoder_of_lab(first.kind, world.lab.pk) == first.base  # it has all vectors
    assert use_of(manager, first) == "preparing"
    world.run_jobs()
    assert use_of(manager, first) == "yes"
    assert Embedding.objects.filter(roi=drawn, encoder=first.encoder).exists()
    services.learning_roll_back(learning=first, user=manager)
    assert selectors.encoder_of_lab(first.kind, world.lab.pk) == first.base


def test_a_way_back_stops_what_was_to_take_the_place_of_what_is_taken_back(world, manager):
    _, first = promoted(world, manager)
    world.run_jobs()
    second = learned(world, manager)
    Learning.objects.filter(pk=second.pk).update(is_better=True)
    services.learning_promote(learning=second, user=manager)
    services.learning_roll_back(learning=second, user=manager)  # before it is complete
    assert (use_of(manager, first), use_of(manager, second)) == ("yes", "no")
    services.learning_promote(learning=second, user=manager)
    services.learning_roll_back(learning=first, user=manager)
    world.run_jobs()
    assert (use_of(manager, first), use_of(manager, second)) == ("no", "no")
    assert selectors.encoder_of_lab(first.kind, world.lab.pk) == first.base

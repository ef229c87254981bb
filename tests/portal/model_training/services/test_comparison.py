"""Training while a lab uses its own encoder: comparison with it, and rollback."""

from __future__ import annotations

import numpy as np
import pytest

from portal.core.errors import ConflictError
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.selectors.encoders import encoder_default, encoder_of_lab
from portal.model_training.models import Learning
from portal.model_training.selectors.learnings import learning_get
from portal.model_training.selectors.results import LearningResult
from portal.model_training.services.learnings import learning_promote, learning_roll_back
from tests.portal.model_training.archives import filled, learned, promoted


def result_of(learning):
    return LearningResult.from_json(learning.result)


def use_of(manager, learning):
    return learning_get(manager, learning.pk).use


def put_over(world, manager, first):
    """A second metric, taken to be better than the first, in its place."""
    second = learned(world, manager)
    assert second.compared_with == first.encoder
    Learning.objects.filter(pk=second.pk).update(is_better=True)
    learning_promote(learning=second, user=manager)
    world.run_jobs()
    assert (use_of(manager, first), use_of(manager, second)) == ("no", "yes")
    return second


def own_in_use(world, base, rois):
    """An encoder of the lab whose one number tells the labels, of these regions."""
    lab_encoder = Encoder.objects.create(
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
            encoder=lab_encoder,
            roi=roi,
            roi_version=roi.version,
            lab_id=roi.lab_id,
            canvas_id=roi.canvas_id,
            vector=np.array([roi.label_id == large], "<f4").tobytes(),
        )
        for roi in rois
    )
    return lab_encoder


def test_the_same_metric_learned_again_is_no_better_than_the_active_one(world, manager):
    _, first = promoted(world, manager)
    assert first.compared_with == first.base
    world.run_jobs()
    second = learned(world, manager)
    assert (second.base, second.compared_with) == (first.base, first.encoder)
    assert second.is_better is False
    latest, before = result_of(second), result_of(first)
    assert [measure.old for measure in latest.measures] == pytest.approx(
        [measure.new for measure in before.measures], abs=1e-6
    )
    assert all(measure.gain == pytest.approx(0, abs=1e-6) for measure in latest.measures)
    assert all(change.better == change.worse == 0 for change in latest.changes)
    assert all(example.old == example.new for example in latest.examples)
    with pytest.raises(ConflictError, match="not better"):
        learning_promote(learning=second, user=manager)


def test_a_metric_is_compared_with_the_labs_encoder_on_regions_that_it_has_embedded(world, manager):
    rois = [roi for own in filled(world) for roi in own]
    base = encoder_default()
    own = own_in_use(world, base, rois[1:])  # one region has no vector of it yet
    learning = learned(world, manager)
    assert (learning.base, learning.compared_with) == (base, own)
    comparison = result_of(learning)
    assert comparison.regions == 59
    assert comparison.measures[0].old == 1.0  # it knows the labels
    assert learning.is_better is False
    labels = {str(roi.pk): roi.label_id for roi in rois}
    assert all(
        {labels[key] for key in example.old} == {labels[example.roi]}
        for example in comparison.examples
    )


def test_promoting_after_the_searches_changed_is_a_conflict(world, manager):
    filled(world)
    first, second = learned(world, manager), learned(world, manager)
    learning_promote(learning=first, user=manager)
    world.run_jobs()
    with pytest.raises(ConflictError, match=f"compared with {first.base}, but .* now use {first}"):
        learning_promote(learning=second, user=manager)
    learning_roll_back(learning=first, user=manager)
    learning_promote(learning=second, user=manager)
    world.run_jobs()
    assert use_of(manager, second) == "yes"


def test_a_rollback_returns_to_the_previous_metric(world, manager):
    _, first = promoted(world, manager)
    world.run_jobs()
    second = put_over(world, manager, first)
    learning_roll_back(learning=second, user=manager)  # it lacks nothing: at once
    assert (use_of(manager, first), use_of(manager, second)) == ("yes", "no")
    learning_promote(learning=second, user=manager)
    world.run_jobs()
    drawn = world.embedded(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    learning_roll_back(learning=second, user=manager)
    assert encoder_of_lab(first.kind, world.lab.pk) == first.base  # it has all vectors
    assert use_of(manager, first) == "preparing"
    world.run_jobs()
    assert use_of(manager, first) == "yes"
    assert Embedding.objects.filter(roi=drawn, encoder=first.encoder).exists()
    learning_roll_back(learning=first, user=manager)
    assert encoder_of_lab(first.kind, world.lab.pk) == first.base


def test_a_rollback_cancels_the_encoder_that_was_about_to_replace_it(world, manager):
    _, first = promoted(world, manager)
    world.run_jobs()
    second = learned(world, manager)
    Learning.objects.filter(pk=second.pk).update(is_better=True)
    learning_promote(learning=second, user=manager)
    learning_roll_back(learning=second, user=manager)  # before it is complete
    assert (use_of(manager, first), use_of(manager, second)) == ("yes", "no")
    learning_promote(learning=second, user=manager)
    learning_roll_back(learning=first, user=manager)
    world.run_jobs()
    assert (use_of(manager, first), use_of(manager, second)) == ("no", "no")
    assert encoder_of_lab(first.kind, world.lab.pk) == first.base

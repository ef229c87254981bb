"""Two encoders on a lab's own labels, against a slow count."""

from __future__ import annotations

import numpy as np
import pytest

from portal.annotations.models import Label
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.selectors import encoder_comparison
from portal.embeddings.selectors.encoder_comparison import encoder_compare


@pytest.fixture
def two(db):
    shared = {"config_hash": "x", "dim": 3, "kind": "histology"}
    return (
        Encoder.objects.create(name="old", version="1", is_default=True, **shared),
        Encoder.objects.create(name="new", version="1", is_next=True, **shared),
    )


@pytest.fixture
def archive(world, two):
    """Twelve ROIs of six patients, three labels; vectors by a seed."""
    rng = np.random.default_rng(5)
    labels = world.labels("A", "B", "C")
    rows = []
    for i in range(12):
        canvas = world.canvas(world.case(f"S{i}", patient=f"P{i // 2}"))
        roi = world.roi(canvas, label=labels[i % 3])
        vectors = rng.normal(size=(2, 3)).astype(np.float32)
        for encoder, vector in zip(two, vectors, strict=True):
            save(roi, encoder, vector)
        rows.append((f"P{i // 2}", i % 3, vectors))
    return rows


def save(roi, encoder, vector):
    Embedding.objects.create(
        lab=roi.lab,
        encoder=encoder,
        roi=roi,
        canvas=roi.canvas,
        roi_version=roi.version,
        vector=np.asarray(vector, "<f4").tobytes(),
    )


def slow(rows, k):
    """Share of the same label, for each of the two, and of the nearest in common."""
    shares, common = ([], []), []
    for patient, label, vectors in rows:
        others = [row for row in rows if row[0] != patient]
        lists = []
        for which in (0, 1):
            order = sorted(others, key=lambda r: np.linalg.norm(r[2][which] - vectors[which]))
            lists.append([id(row) for row in order[:k]])
            shares[which].append(np.mean([row[1] == label for row in order[:k]]))
        common.append(len(set(lists[0]) & set(lists[1])) / k)
    return np.mean(shares[0]), np.mean(shares[1]), np.mean(common)


def test_facets_equal_a_slow_count(world, two, archive, monkeypatch):
    monkeypatch.setattr(encoder_comparison, "K", 4)
    old, new = two
    comparison = encoder_compare(current=old, following=new, lab_id=world.lab.pk)
    current, following, common = slow(archive, 4)
    assert (comparison.rois, comparison.patients) == (12, 6)
    assert comparison.current == pytest.approx(current)
    assert comparison.following == pytest.approx(following)
    assert comparison.in_common == pytest.approx(common)
    assert comparison.gain == pytest.approx(following - current)
    assert comparison.gain_low <= comparison.gain <= comparison.gain_high


def test_a_better_encoder_has_a_gain_and_an_interval_above_zero(world, two):
    labels = world.labels("A", "B")
    for i in range(40):
        roi = world.roi(world.canvas(world.case(f"S{i}", patient=f"P{i}")), label=labels[i % 2])
        save(roi, two[0], [0, 0, i // 2])
        save(roi, two[1], [i % 2, 0, i * 1e-3])
    comparison = encoder_compare(current=two[0], following=two[1], lab_id=world.lab.pk)
    assert comparison.following == 1.0 and comparison.current < 0.7 and comparison.gain_low > 0
    assert comparison.chance == pytest.approx(19 / 39)


def test_a_comparison_without_shared_labels_is_none(world, two, other_lab):
    old, new = two
    compare = {"current": old, "following": new}
    assert encoder_compare(**compare, lab_id=world.lab.pk) is None
    (label,) = world.labels("A")
    for i in range(2):
        roi = world.roi(world.canvas(world.case(f"S{i}", patient="P")), label=label)
        save(roi, old, [0, 0, i])
        save(roi, new, [0, 0, i])
    assert encoder_compare(**compare, lab_id=world.lab.pk) is None  # one patient only
    assert encoder_compare(**compare, lab_id=other_lab.pk) is None


def test_rois_that_only_one_has_embedded_are_left_out(world, two, archive):
    roi = world.roi(world.canvas(world.case("X", patient="X")), label=Label.objects.first())
    save(roi, two[0], [0, 0, 0])
    comparison = encoder_compare(current=two[0], following=two[1], lab_id=world.lab.pk)
    assert comparison.rois == 12


def test_the_query_count_does_not_grow(world, two, archive, django_assert_num_queries):
    with django_assert_num_queries(2):
        encoder_compare(current=two[0], following=two[1], lab_id=world.lab.pk)

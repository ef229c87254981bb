"""Reported states of the index files."""

from __future__ import annotations

from portal.embeddings.indexes import Scope
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.index_files.snapshots import index_states
from portal.embeddings.services.indexes import index_build_submit


def test_index_states_of_all_encoders_take_a_constant_number_of_queries(
    world, other_lab, stranger, django_assert_num_queries
):
    canvas = world.canvas(world.case("A1"))
    world.embedded(canvas)
    encoder = Encoder.objects.get()
    index_build_submit(scope=Scope(encoder, world.lab.pk))
    world.run_jobs()
    for left in (60, 120):
        world.embedded(canvas, left=left)
    world.embedded(
        world.canvas(world.case("B1", lab=other_lab)), user=stranger
    )  # a lab without a file
    for number in range(4):
        Encoder.objects.create(name=f"other {number}", version="1", config_hash="x", dim=4)
    with django_assert_num_queries(4):
        states = index_states()
    (result,) = (state for state in states if state.encoder == str(encoder))
    assert (result.newer, result.vectors, result.recall) == (3, 1, 1.0)
    assert result.age_s > 0 and result.size_bytes > 0
    others = [state for state in states if state is not result]
    assert [(other.newer, other.age_s, other.vectors) for other in others] == [(0, 0.0, 0)] * 4

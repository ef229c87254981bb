"""What is told of the index files."""

from __future__ import annotations

from portal.retrieval.indexes import Scope
from portal.retrieval.models import Encoder
from portal.retrieval.selectors import index_states
from portal.retrieval.services import index_build_submit


def test_each_encoder_tells_its_files_and_what_is_newer_at_the_cost_of_one(
    world, other_lab, stranger, django_assert_num_queries
):
    canvas = world.canvas(world.case("A1"))
    world.embedded(canvas)
    encoder = Encoder.objects.get()
    index_build_submit(scope=Scope(encoder, world.lab.pk), version=1)
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
    (told,) = (state for state in states if state.encoder == str(encoder))
    assert (told.newer, told.vectors, told.recall) == (3, 1, 1.0)
    assert told.age_s > 0 and told.size_bytes > 0
    others = [state for state in states if state is not told]
    assert [(one.newer, one.age_s, one.vectors) for one in others] == [(0, 0.0, 0)] * 4

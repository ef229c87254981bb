"""Registries: values by key, each once, and filled by every app when Django starts."""

from __future__ import annotations

import pytest

from portal.annotations.events import RoiEvent
from portal.core.events import BATCH_HANDLERS
from portal.core.registry import Registry
from portal.embeddings.subscribers import embed_saved_rois


def test_values_have_the_order_of_their_registration_and_are_there_once() -> None:
    registry: Registry[str, str] = Registry()
    for value in ("first", "second", "first"):
        assert registry.register("key")(value) == value
    registry.register("other")("third")
    assert registry.all("key") == ("first", "second")
    assert registry.all("unknown") == ()
    assert registry.items() == [("key", "first"), ("key", "second"), ("other", "third")]


@pytest.mark.parametrize("name", [RoiEvent.SAVED, "roi.saved"])
def test_a_saved_roi_is_embedded_by_a_subscriber_that_django_found(name: str) -> None:
    assert embed_saved_rois in BATCH_HANDLERS.all(name)

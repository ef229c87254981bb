"""A small form of ``make fuzz UPLOADS=1``, and its honest documents."""

from __future__ import annotations

import io
import uuid

import pytest

from portal.annotations.formats.types import Plane
from portal.annotations.formats.unpacking import documents_open
from portal.annotations.qupath import feature_read
from tests.fuzz.documents import HEIGHT_PX, WIDTH_PX, documents
from tests.fuzz.uploads import upload_outcomes


@pytest.mark.slow
@pytest.mark.endurance
def test_damaged_files_sent_over_rest_end_with_a_reason() -> None:
    items = list(upload_outcomes(minutes=1, seed=12))
    assert [outcome for outcome in items if outcome.is_finding] == []
    assert items[-1].name == "portal" and len(items) > 5


def test_honest_documents_are_read() -> None:
    plane = Plane(uuid.UUID(int=1), "a.png", WIDTH_PX, HEIGHT_PX, None, None)
    for name, data in documents().items():
        opened, _ = documents_open(io.BytesIO(data))
        for file in opened:
            file.stream.seek(0)
            features = [feature_read(raw) for raw in file.reader.read(file.stream, plane)]
            assert features, name

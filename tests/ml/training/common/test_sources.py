from __future__ import annotations

import pytest

from ml.errors import BadInputError
from ml.training.common.sources import images_in, source_files


@pytest.fixture
def data(tmp_path):
    (tmp_path / "more").mkdir()
    for name in ("one.svs", "more/b.PNG", "more/a.jpg", "more/notes.txt"):
        (tmp_path / name).touch()
    return tmp_path


def test_folders_are_expanded_in_name_order_among_files(data):
    names = [path.name for path in source_files(("more", "one.svs"), data)]
    assert names == ["a.jpg", "b.PNG", "one.svs"]


def test_missing_sources_are_named_and_no_source_raises_an_error(data):
    with pytest.raises(BadInputError, match=r"'two\.svs'"):
        source_files(("one.svs", "two.svs"), data)
    with pytest.raises(BadInputError, match="no source"):
        source_files((), data)
    assert images_in(data / "nowhere") == []

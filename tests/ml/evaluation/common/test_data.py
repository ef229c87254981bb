"""Folder of development data of the evaluations."""

from __future__ import annotations

from pathlib import Path

import pytest

from ml.errors import BadInputError
from ml.evaluation.common.data import data_folder


def test_the_option_comes_before_the_environment(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TESSERA_DATA", str(tmp_path / "nowhere"))
    assert data_folder(tmp_path) == tmp_path
    with pytest.raises(BadInputError, match="nowhere: no such folder"):
        data_folder(None)
    monkeypatch.setenv("TESSERA_DATA", str(tmp_path))
    assert data_folder(None) == tmp_path
    monkeypatch.delenv("TESSERA_DATA")
    with pytest.raises(BadInputError, match="got neither"):
        data_folder(None)

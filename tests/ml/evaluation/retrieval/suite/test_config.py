"""Suite files: the shipped ones, and bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.config import SHIPPED, read_suite


def test_the_shipped_suite_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = read_suite(Path("suite.toml"))
    assert [s.name for s in config.sets] == ["glas", "atlas", "her2st", "sections", "lc25000"]
    assert [s.name for s in config.sets if s.choice] == ["glas", "atlas", "her2st"]
    assert (config.k, config.draws) == (10, 5)
    assert config.sets[0].tasks["four grades"] == []


def test_the_shipped_suite_states_its_rule_of_choice():
    assert "largest mean margin" in SHIPPED.read_text()


def test_the_suite_of_large_regions_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = read_suite(Path("large.toml"))
    assert [(s.cell_um, s.stride_um) for s in config.sets] == [(1000, 250), (500, 250)]
    assert config.draws == 0


def test_a_file_in_the_working_folder_has_priority_over_the_shipped_suite(
    tmp_path, monkeypatch, data
):
    monkeypatch.chdir(data)
    assert [s.name for s in read_suite(Path("suite.toml")).sets] == ["dots"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k = ", "not TOML"),
        ("words = 3", "unknown key 'words'"),
        ("k = 0", "at least 1"),
        ("draws = -1", "at least 0"),
        ("", r"no \[\[sets\]\]"),
        ("[[sets]]\npath='x'", "name of its own"),
        ("[[sets]]\nname='a'\nkind='frames'", "expected one of manifest, table, sections"),
        ("[[sets]]\nname='a'\npath='x'\nstride_um=-1", "stride_um of 0 or more"),
        ("[[sets]]\nname='a'\npath='x'\ncell_um=0", "a cell_um above 0"),
        ("[[sets]]\nname='a'\npath='x'\nunrelated=['b']", "no other set is called b"),
        ("[[sets]]\nname='a'\npath='x'", "at least one task"),
        ("[[sets]]\nname='a'\npath='x'\n[sets.tasks]\nt=[]", r"\[training\]: expected an index"),
    ],
)
def test_an_invalid_suite_raises_an_error(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(BadInputError, match=message):
        read_suite(path)


def test_a_missing_suite_raises_an_error(tmp_path):
    with pytest.raises(BadInputError, match="suite file"):
        read_suite(tmp_path / "mine.toml")

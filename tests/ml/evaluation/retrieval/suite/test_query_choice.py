"""Rule that chooses the query method, and its command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ml.cli import main
from ml.evaluation.retrieval.suite.query_choice import EXPAND, candidates, choose_query
from ml.evaluation.retrieval.suite.query_command import describe
from ml.evaluation.retrieval.suite.query_methods import BY_DISTANCE
from ml.index.ranking.diffusion import DiffusionConfig

DOCS = Path(__file__).resolve().parents[5] / "docs"


def scores(**by_task):
    return {
        tuple(task.split("_")): {name: list(cells) for name, cells in of.items()}
        for task, of in by_task.items()
    }


def test_of_the_candidates_with_the_smallest_largest_loss_the_best_mean_is_chosen():
    choice = choose_query(
        scores(
            a_x={"plain": [0.5, 0.4], "bold": [0.9, 0.8], "mild": [0.8, 0.7], "meek": [0.79, 0.7]},
            a_y={"plain": [0.5], "bold": [0.48], "mild": [0.5], "meek": [0.5]},
            b_z={"plain": [0.6], "bold": [0.3], "mild": [0.5], "meek": [0.5]},
        )
    )
    assert choice.chosen == "mild"
    mild = choice.scores["mild"]
    assert mild.losses == pytest.approx({("a", "x"): 0.1, ("a", "y"): 0.0, ("b", "z"): 0.1})
    assert mild.sets == pytest.approx({"a": 0.625, "b": 0.5}) and mild.worst == pytest.approx(0.1)
    assert mild.mean == pytest.approx(0.5625)
    assert choice.scores["plain"].worst == pytest.approx(0.4)


def test_the_choice_without_a_set_is_measured_on_it():
    task_scores = scores(a_x={"plain": [0.5], "bold": [0.9]}, b_y={"plain": [0.5], "bold": [0.4]})
    choice = choose_query(task_scores)
    assert choice.chosen == "bold"
    assert choice.left_out == {"a": ("plain", 0.5), "b": ("bold", 0.4)}
    assert choice.cost == pytest.approx(0.65 - 0.45)


def test_candidates_are_all_different_and_the_first_is_the_distance():
    methods = candidates()
    assert next(iter(methods.values())) == BY_DISTANCE
    assert len(set(methods.values())) == len(methods)


def test_the_defaults_are_those_of_the_kept_result_and_the_page_shows_it():
    result = json.loads((DOCS / "results" / "query.json").read_text())
    assert describe(result) in (DOCS / "evaluation.md").read_text()
    chosen = candidates()[result["chosen"]]
    assert (chosen.expand, chosen.diffusion) == (EXPAND, DiffusionConfig())


@pytest.mark.slow
def test_the_command_scores_all_candidates_and_renews_a_page(data, tmp_path, capsys):
    suite = data / "suite.toml"
    second = suite.read_text().replace('name = "dots"', 'name = "again"').partition("[[sets]]")[2]
    other = data / "two.toml"
    other.write_text(f"{suite.read_text()}[[sets]]{second}")
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- figures: query -->\n<!-- end figures -->\n")
    out = tmp_path / "query.json"
    arguments = ["--suite", str(other), "--data", str(data), "--json", str(out)]
    assert main(["evaluate", "query", *arguments, "--card", str(page)]) == 0
    result = json.loads(out.read_text())
    assert [task["set"] for task in result["tasks"]] == ["dots", "again"]
    assert set(result["tasks"][0]["candidates"]) == set(result["means"]) == set(candidates())
    assert result["tasks"][0]["candidates"]["by distance"]["gain"] == 0
    chosen = result["chosen"]
    assert result["worst"][chosen] <= min(result["worst"].values()) + result["tolerance"]
    assert f"**{chosen}**" in page.read_text()

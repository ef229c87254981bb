"""Graph networks against the mean on large regions."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ml.errors import BadInputError
from ml.evaluation.retrieval.arrangement import (
    describe,
    gains_over_sets,
    pair_gains,
    pair_shares,
    read_runs,
    set_graphs,
    task_gains,
)
from ml.evaluation.retrieval.suite.arrangement import HALF, OCCLUDED, LargeRegion, part_set
from ml.evaluation.retrieval.suite.config import SetConfig, SuiteConfig
from ml.roi.load import load_graph_encoder
from ml.types import no_progress


def noise(seed: int):
    return np.random.default_rng(seed).integers(0, 255, (300, 300, 3), dtype=np.uint8)


@pytest.fixture
def parts():
    config = SetConfig(name="s", kind="slides", path=".", rearranged=1)
    large_regions = [LargeRegion(f"w{n}", "P", f"g{n}", lambda n=n: noise(n)) for n in range(3)]
    return part_set(config, large_regions)


def vectors_of(parts, *, separated: bool):
    """Regions at different places; copies at that of their region, or elsewhere."""
    graphs = []
    for item in parts.items:
        region, what = item.key.split(maxsplit=1)
        far = 0.3 * (separated and what.startswith("rearranged"))
        near = 0.01 * (what == "whole")  # a copy is nearer to the query than its region
        graphs.append([float(region[1:]), far + near])
    return np.array(graphs, np.float32)


def test_an_architecture_that_distinguishes_arrangements_beats_the_mean(parts):
    mean = vectors_of(parts, separated=False)
    runs = {"same": [mean, mean], "better": [vectors_of(parts, separated=True), mean]}
    scored = [task_gains(parts, task, mean, runs, SuiteConfig()) for task in parts.tasks]
    assert [score.task["task"] for score in scored] == [HALF, OCCLUDED]
    for score in scored:
        assert score.task["mean"] == pytest.approx(0.5)  # the copy comes first
        same, better = (score.task["architectures"][name] for name in ("same", "better"))
        assert (same["gain"], same["interval"]) == (0, (0, 0))
        assert (better["score"], better["gain"]) == (pytest.approx(0.75), pytest.approx(0.25))
    overall = gains_over_sets(scored)
    assert overall["better"]["gain"] == pytest.approx(0.25)
    result = {
        "encoder": "e 1",
        "seeds": {"same": 2, "better": 2},
        "weights": {},
        "tasks": [score.task for score in scored],
        "overall": overall,
        "pairs": [score.task for score in scored],
        "overall_pairs": overall,
        "validation": overall,
        "suite": overall,
        "chosen": "better",
    }
    assert "| s: half | 3 |" in describe(result) and "+0.250" in describe(result)


def test_graphs_of_a_set_are_computed_once(parts, tmp_path):
    encoder = load_graph_encoder()
    first = set_graphs(parts, encoder, tmp_path, no_progress)
    unreadable = dataclasses.replace(
        parts, items=tuple(dataclasses.replace(item, read=None) for item in parts.items)
    )
    second = set_graphs(unreadable, encoder, tmp_path, no_progress)
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a.x, b.x) and np.array_equal(a.edge_index, b.edge_index)
        assert torch.equal(*(torch.from_numpy(encoder.embed_graph(g)) for g in (a, b)))


def test_a_folder_without_runs_raises_an_error(tmp_path):
    with pytest.raises(BadInputError, match=r"no ARCHITECTURE-SEED\.safetensors"):
        read_runs(tmp_path)


def test_the_mean_cannot_distinguish_a_region_from_its_vertices_rearranged(parts, tmp_path):
    encoder = load_graph_encoder()
    graphs = set_graphs(parts, encoder, tmp_path, no_progress)
    (task, _) = parts.tasks
    shares = pair_shares(task, encoder, graphs)
    assert shares.tolist() == [0.5, 0.5, 0.5]
    gains = pair_gains(parts, task, {"mean": [shares]}, SuiteConfig()).task
    assert (gains["mean"], gains["architectures"]["mean"]["gain"]) == (0.5, 0)


def test_the_committed_card_agrees_with_its_result():
    docs = Path(__file__).resolve().parents[4] / "docs"
    report = json.loads((docs / "results" / "roi-graph.json").read_text(encoding="utf-8"))
    card = (docs / "models" / "roi-graph.md").read_text(encoding="utf-8")
    assert f"<!-- figures: arrangement -->\n{describe(report)}\n<!-- end figures -->" in card

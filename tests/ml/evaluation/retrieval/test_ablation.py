"""The experiment on graph networks with and without labels."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.cli import main
from ml.evaluation.retrieval.ablation import command
from ml.evaluation.retrieval.ablation.command import describe
from ml.evaluation.retrieval.ablation.experiment import (
    ARCHITECTURES,
    TRAININGS,
    ExperimentConfig,
    SearchSpace,
    drawn_settings,
    run_experiment,
)
from ml.evaluation.retrieval.ablation.regions import LabelledGraphs
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.splits import SplitConfig
from ml.roi.graph import build_graph
from ml.types import no_progress

SHORT = ExperimentConfig(
    split=SplitConfig(folds=4, generations=20),
    seeds=2,
    draws=1,
    search=SearchSpace(hidden_dim=(8,), steps=(10,), learning_rate=(2e-2,)),
)


@pytest.fixture(autouse=True, scope="module")
def _two_architectures():
    """Train GCN and the network without edges only: the others differ in no step of the run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DiffPool", "GraphConv"):
            patch.delitem(ARCHITECTURES, name)
        yield


def regions(*, kind_feature: int = 0) -> LabelledGraphs:
    """Regions of eight patients and two kinds, which differ in one feature."""
    rng = np.random.default_rng(0)
    records, graphs = [], []
    for patient in range(8):
        for number in range(4):
            kind = number % 2
            x = rng.normal(0, 1, (6, 5)).astype(np.float32)
            x[:, kind_feature] += 4 * kind
            graphs.append(build_graph(x, rng.uniform(0, 900, (6, 2))))
            name = f"P{patient}"
            records.append(RoiRecord(Path(name), name, "ab"[kind], None, None))
    return LabelledGraphs(tuple(records), tuple(graphs), 0, f"kind {kind_feature}")


@pytest.fixture(scope="module")
def found(_two_architectures, tmp_path_factory):
    cache = tmp_path_factory.mktemp("vectors")
    return run_experiment(
        regions(), SHORT, test_gallery=True, cache=cache, progress=no_progress
    ), cache


def test_every_region_is_a_query_once_and_every_network_has_a_score_for_it(found):
    precisions, _ = found
    assert len(precisions.patients) == 32 and precisions.unscored == 0
    assert set(precisions.networks) == {(a, t) for a in ARCHITECTURES for t in TRAININGS}
    for runs in precisions.networks.values():
        assert runs.shape == (2, 2, 32) and np.isfinite(runs).all()


def test_labels_teach_the_feature_that_tells_the_kinds_apart(found):
    precisions, _ = found
    for architecture in ARCHITECTURES:
        score = precisions.networks[architecture, "supervised"][:, 0].mean()
        assert score > precisions.chance[0].mean() + 0.1


def test_a_network_is_never_trained_on_the_folds_it_is_scored_and_chosen_on(monkeypatch, tmp_path):
    from ml.evaluation.retrieval.ablation import experiment

    data = regions()
    folds: dict[int, set[str]] = {}
    trained = []

    def spy(graphs, labels=None, *, config):
        places = [next(i for i, g in enumerate(data.graphs) if g is graph) for graph in graphs]
        trained.append({data.records[place].patient for place in places})
        return original(graphs, labels, config=config)

    original = experiment.train_graph_encoder
    monkeypatch.setattr(experiment, "train_graph_encoder", spy)
    config = replace(SHORT, seeds=1, draws=2, search=replace(SHORT.search, steps=(1,)))
    report = run_experiment(data, config, test_gallery=False, cache=tmp_path, progress=no_progress)
    folds = {i: set(names) for i, names in enumerate(report.folds.patients)}
    allowed = [folds[(t + 2) % 4] | folds[(t + 3) % 4] for t in range(4)]
    assert trained and all(patients in allowed for patients in trained)


def test_a_run_that_was_stopped_trains_nothing_twice(found, monkeypatch):
    from ml.evaluation.retrieval.ablation import experiment

    precisions, cache = found

    def fail(*args, **kwargs):
        raise AssertionError("trained again")

    monkeypatch.setattr(experiment, "train_graph_encoder", fail)
    again = run_experiment(regions(), SHORT, test_gallery=True, cache=cache, progress=no_progress)
    for key, runs in precisions.networks.items():
        assert np.array_equal(runs, again.networks[key])


def test_the_settings_are_drawn_alike_for_every_network():
    first, second = (drawn_settings(name, ExperimentConfig()) for name in ("gcn", "topk"))
    assert [s.learning_rate for s in first] == [s.learning_rate for s in second]
    assert len({(s.learning_rate, s.steps, s.hidden_dim, s.temperature) for s in first}) > 1


def test_the_command_scores_a_folder_and_fills_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = replace(SHORT.search, steps=(1,))
    monkeypatch.setattr(command, "ExperimentConfig", partial(ExperimentConfig, search=search))
    folder = tmp_path / "histology" / "lc25000-lung"
    folder.mkdir(parents=True)
    rows = ["image,patient,label,mpp,geometry\n"]
    for patient in range(8):
        for label, grain_px in (("fine", 4), ("coarse", 16)):
            rng = np.random.default_rng((patient, grain_px))
            noise = rng.integers(90, 220, (224 // grain_px, 224 // grain_px, 3), dtype=np.uint8)
            name = f"{patient}-{label}.png"
            Image.fromarray(noise).resize((224, 224)).save(folder / name)
            rows.append(f"{name},P{patient},{label},,\n")
    (folder / "rois.csv").write_text("".join(rows))
    card = tmp_path / "card.md"
    card.write_text("# Ablation\n<!-- figures: ablation -->\n<!-- end figures -->\n")
    words = ["evaluate", "ablation", "--data", str(tmp_path), "--sets", "lung", "--seeds", "1"]
    words += ["--draws", "1", "--cache", str(tmp_path / "cache"), "--card", str(card)]
    assert main([*words, "--json", str(tmp_path / "out.json")]) == 0
    report = json.loads((tmp_path / "out.json").read_text())["sets"][0]
    assert report["labels"] == ["coarse", "fine"] and report["patients"] == 8
    assert len(report["rows"]) == len(ARCHITECTURES) * len(TRAININGS)
    for row in report["rows"]:
        low, high = row["scores"]["10"]["interval"]
        assert 0 <= low <= row["scores"]["10"]["value"] <= high <= 1
    assert "| GCN | self-supervised |" in card.read_text()


def test_the_committed_card_agrees_with_its_result() -> None:
    docs = Path(__file__).resolve().parents[4] / "docs"
    report = json.loads((docs / "results" / "roi-ablation.json").read_text(encoding="utf-8"))
    card = (docs / "models" / "roi-ablation.md").read_text(encoding="utf-8")
    assert f"<!-- figures: ablation -->\n{describe(report)}\n<!-- end figures -->" in card

"""Suites end to end, from the file to the tables."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from ml.cli import main
from ml.errors import BadInputError
from ml.evaluation.retrieval.closeness import CalledClose
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite import run
from ml.evaluation.retrieval.suite.command import write_card
from ml.evaluation.retrieval.suite.config import read_suite
from ml.evaluation.retrieval.suite.methods import SuiteMethod, encoder_methods
from ml.evaluation.retrieval.suite.query_methods import QueryMethod
from ml.evaluation.retrieval.suite.run import read_sets, run_suite
from ml.evaluation.retrieval.suite.table import card_figures, card_lines, describe
from ml.index.ranking.calibration import Calibration
from ml.networks.vertex_mean import VertexMean, vertex_mean_config
from ml.roi.embed import RoiEncoder
from ml.roi.load import load_graph_encoder
from ml.roi.weights import save_encoder
from ml.types import no_progress


def mean_colour(region):
    return region.pixels.mean(axis=(0, 1)).astype(np.float32)


def spy(calls, method):
    def called(*args, **kwargs):
        calls.append(args)
        return method(*args, **kwargs)

    return called


def roughness(region):
    grey = region.pixels[..., 0].astype(np.float32)
    away = np.abs(grey - grey.mean())
    return np.array([np.abs(np.diff(grey, axis=0)).mean() / away.mean()], np.float32)


@pytest.fixture(scope="module")
def result(data):
    config = read_suite(data / "suite.toml")
    methods = [
        SuiteMethod("colour", "c", True, mean_colour),
        SuiteMethod("structure", "s", False, roughness, {"version": "1"}),
    ]
    sets = read_sets(config, data, no_progress)
    return run_suite(config, sets, methods, cache=None, progress=no_progress)


def test_swapping_stains_affects_colour_methods_and_not_structure_methods(result):
    methods = result["sets"]["dots"]["tasks"]["sizes"]["methods"]
    assert methods["structure"].as_is.score > 0.9
    assert methods["structure"].cost_percent < 10
    assert methods["colour"].swapped.score < 0.75


def test_results_contain_chance_patient_pull_and_counts(result):
    set_result = result["sets"]["dots"]
    assert (set_result["items"], set_result["patients"]) == (16, 4)
    assert set_result["tasks"]["sizes"]["classes"] == {"large": 8, "small": 8}
    assert 0.4 < set_result["tasks"]["sizes"]["chance"] < 0.6
    # one of seven others with a label is of the same patient
    assert set_result["patient_pull"]["labels_alone"] == pytest.approx(1 / 7)
    assert set(set_result["patient_pull"]["methods"]) == {"colour", "structure"}


def test_the_margin_equals_that_of_the_cells(result):
    methods = result["sets"]["dots"]["tasks"]["sizes"]["methods"]
    by_hand = [
        getattr(methods["structure"], c).score - getattr(methods["colour"], c).score
        for c in ("as_is", "swapped")
    ]
    margin = result["choice"].margins["structure"]
    assert margin.sets["dots"] == pytest.approx(np.mean(by_hand))


@pytest.mark.slow
def test_query_methods_share_vectors_and_label_metrics_are_not_candidates(data):
    config = read_suite(data / "suite.toml")
    calls = []

    def counted(region):
        calls.append(1)
        return roughness(region)

    plain = SuiteMethod("structure", "s", False, counted)
    ways = {"expanded": QueryMethod(expand=1), "learned": QueryMethod(learn=True)}
    methods = [
        plain,
        *(
            replace(plain, name=name, query_method=query_method)
            for name, query_method in ways.items()
        ),
        SuiteMethod("colour", "c", True, mean_colour),
    ]
    sets = read_sets(config, data, no_progress)
    report = run_suite(config, sets, methods, cache=None, progress=no_progress)
    assert set(report["choice"].margins) == {"structure", "expanded"}
    assert set(report["sets"]["dots"]["tasks"]["sizes"]["methods"]) == {
        "structure",
        "expanded",
        "learned",
        "colour",
    }
    call_count = len(calls)
    run_suite(config, sets, [plain, methods[-1]], cache=None, progress=no_progress)
    assert len(calls) == 2 * call_count


def test_the_card_of_a_calibrated_encoder_has_the_shares_of_close_hits(data, monkeypatch):
    config = read_suite(data / "suite.toml")
    dots = replace(config.sets[0], unrelated=("more",), swap=False)
    config = replace(config, sets=(dots, replace(dots, name="more", unrelated=())), draws=0)
    methods = [
        SuiteMethod("colour", "c", True, mean_colour),
        SuiteMethod("structure", "s", False, roughness, {"config_hash": "known"}),
        SuiteMethod(
            "structure, diffused", "s", False, roughness, query_method=QueryMethod(diffuse=True)
        ),
    ]
    everything = Calibration.from_quantiles([0.001, 0.9], [10.0, 20.0])
    monkeypatch.setattr(run, "calibration_of", {"known": everything}.get)
    sets = read_sets(config, data, no_progress)
    report = run_suite(config, sets, methods, cache=None, progress=no_progress)
    close = {name: s["tasks"]["sizes"]["called_close"] for name, s in report["sets"].items()}
    assert close == {"dots": {"structure": CalledClose(1.0, 1.0)}, "more": {}}
    text = card_figures({**report, "choose": False})
    assert "structure calls the nearest right answer close" in text
    assert text.count("dots: sizes 1.00 (1.00).") == 1


def test_tables_show_every_method_and_chance(result):
    text = describe({**result, "suite": "suite.toml", "choose": True})
    lines = text.splitlines()
    assert any(line.startswith("| structure |") for line in lines)
    assert any(line.startswith("| chance |") for line in lines)
    assert "Chosen: structure." in text and "of the same patient" in text


def test_a_card_has_the_first_encoder_its_patient_pull_and_the_choice(result):
    methods = {**result["methods"], "other": {"baseline": False, "config_hash": "other"}}
    text = card_figures({**result, "methods": methods, "choose": True})
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert rows == ["| method", "| ---", "| chance", "| colour", "| structure"]
    assert "(a random region with its label 0.14)" in text
    assert "mean over sets (each set): structure +" in text and "Chosen: structure." in text
    no_choice = card_figures({**result, "choice": None, "choose": False})
    assert "Chosen" not in no_choice and "of the same patient" in no_choice


def test_a_second_suite_is_written_to_the_card_as_lines(result, tmp_path):
    lines = card_lines(result)
    score = result["sets"]["dots"]["tasks"]["sizes"]["methods"]["structure"].as_is.score
    assert lines.startswith(f"- dots: sizes: structure {score:.3f} (")
    assert "; best baseline colour 0." in lines and "|" not in lines
    card = tmp_path / "card.md"
    card.write_text("<!-- figures: large -->\n<!-- end figures -->\n")
    write_card(card, "large", result)
    assert lines in card.read_text()
    with pytest.raises(BadInputError, match="figures: suite"):
        write_card(card, "suite", {**result, "choose": False})


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")
def test_a_page_of_bars_is_written(result, tmp_path):
    from ml.evaluation.retrieval.suite.plots import write_plots

    assert write_plots(tmp_path, result) == ["suite.png"]
    assert (tmp_path / "suite.png").stat().st_size > 5_000
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_the_command_scores_an_encoder_and_every_baseline(data, tmp_path):
    out = tmp_path / "out.json"
    command = ["evaluate", "retrieval", "--suite", str(data / "suite.toml"), "--data", str(data)]
    options = ["--draws", "1", "--cache", str(tmp_path / "cache"), "--json", str(out)]
    assert main([*command, *options]) == 0
    report = json.loads(out.read_text())
    methods = report["sets"]["dots"]["tasks"]["sizes"]["methods"]
    assert list(methods) == [
        "roi-default",
        "HSV histogram",
        "LBP",
        "bag of RootSIFT",
        "local textons",
    ]
    assert methods["local textons"]["as_is"]["score"] > 0.8
    assert len(list((tmp_path / "cache").iterdir())) == 2 * 5 + 2
    assert report["methods"]["roi-default"]["config_hash"]


def test_encoders_with_the_same_patches_share_them(data, tmp_path, monkeypatch):
    """Each still gets its own vector, that of its own ``embed``."""
    encoder = load_graph_encoder("default")
    network = VertexMean(vertex_mean_config(encoder.patches.dim))
    config = replace(encoder.config, network=network.config)
    path = tmp_path / "plain.safetensors"
    save_encoder(
        path, name="plain", version="1", config=config, network=network, patches=encoder.patches
    )
    methods = encoder_methods(["default", str(path)])
    regions = [
        RegionImage(np.asarray(Image.open(file)), None, None)
        for file in sorted((data / "rois").glob("0*.png"))[:2]
    ]
    expected = [[m.embed(region) for m in methods] for region in regions]
    looked = []
    monkeypatch.setattr(RoiEncoder, "image_graph", spy(looked, RoiEncoder.image_graph))
    again = encoder_methods(["default", str(path)])
    vectors = [[m.embed(region) for m in again] for region in regions]
    assert len(looked) == 2
    for first, other, region in zip(expected, vectors, regions, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
        assert np.array_equal(other[0], encoder.embed(region.pixels))


TWICE = ["--encoder", "default", "--encoder", "roi-default"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "none.toml", "--data", "{data}"], "none.toml: no such suite file"),
        (["--suite", "{data}/suite.toml", "--data", "nowhere"], "nowhere: no such folder"),
        (["--suite", "{data}/suite.toml"], "expected --data or TESSERA_DATA"),
        (["{data}", "--suite", "{data}/suite.toml", "--data", "{data}"], "no folder with it"),
        (["--suite", "{data}/suite.toml", "--data", "{data}", "--draws", "-1"], "0 or more"),
        (["--suite", "{data}/suite.toml", "--data", "{data}", "--choose"], "two or more --encoder"),
        (
            ["--suite", "{data}/suite.toml", "--data", "{data}", "--encoder", "nobody"],
            "nobody",
        ),
        (
            ["--suite", "{data}/suite.toml", "--data", "{data}", *TWICE],
            "given twice",
        ),
        (["--suite", "{data}/suite.toml", "--data", "{data}/rois"], "dots: "),
        ([], "expected a folder with rois.csv, or --suite"),
        (["{data}/rois", "--encoder", "a", "--encoder", "b"], "several --encoder"),
    ],
)
def test_bad_suites_are_refused_in_one_line(data, monkeypatch, capsys, arguments, message):
    monkeypatch.delenv("TESSERA_DATA", raising=False)
    filled = [word.replace("{data}", str(data)) for word in arguments]
    assert main(["evaluate", "retrieval", *filled]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error and len(error.splitlines()) == 1

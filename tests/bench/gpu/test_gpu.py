"""The benchmark of a GPU, tried out where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.bench.gpu.__main__ import DOC, main
from tests.bench.gpu.measures import Figure
from tests.bench.gpu.report import report


@pytest.mark.parametrize("measure", ["index", "pairs"])
def test_a_measure_runs_on_the_processor(
    measure: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESSERA_DEVICE", "cpu")
    assert main(["--measure", measure, "--quick"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found and all(figure["value"] > 0 for figure in found.values())


def test_without_a_gpu_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    out = tmp_path / "gpu.md"
    assert main(["--out", str(out)]) == 1
    assert "not run" in out.read_text()
    out.write_text("measured before")
    assert main(["--out", str(out)]) == 1
    assert out.read_text() == "measured before"


def test_what_stands_in_is_not_published() -> None:
    before = DOC.read_text()
    with pytest.raises(SystemExit):
        main(["--stand-in"])
    assert DOC.read_text() == before


def test_ratios_and_shares_are_worked_out_from_the_figures() -> None:
    gpu = {
        "networks": {
            "Patches": Figure(2_000, "patches/s", operations=1e9),
            "Peak": Figure(10, "products/s", operations=1e12),
        },
        "index": {"Search": Figure(2, "ms", more_is_better=False)},
    }
    processors = {
        "networks": {"Patches": Figure(20, "patches/s", operations=1e9)},
        "index": {"Search": Figure(50, "ms", more_is_better=False)},
    }
    page = report(gpu, processors, device="A GPU")
    assert "10.00 TFLOP/s" in page
    assert "| Patches | 2,000 patches/s | 20.00 patches/s | 100.00x | 20.0% |" in page
    assert "| Search | 2.00 ms | 50.00 ms | 25.00x |  |" in page

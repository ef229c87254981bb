"""``python -m ml encoder``: list and make."""

from __future__ import annotations

import json

import pytest

from ml.cli import main
from ml.roi import load_encoder


def test_the_list_names_licence_and_magnification(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TESSERA_MODELS", str(tmp_path))
    (tmp_path / "conch").mkdir()
    (tmp_path / "conch" / "pytorch_model.bin").write_bytes(b"")
    assert main(["encoder", "list", "--json", str(tmp_path / "l.json")]) == 0
    shown = capsys.readouterr().out
    assert "hub:virchow2: paige-ai/Virchow2, 2560 dimensions, patches of 224 px" in shown
    models = {m["name"]: m for m in json.loads((tmp_path / "l.json").read_text())["models"]}
    assert models["conch"]["has_weights"] and models["conch"]["tile_px"] == 512
    assert models["h-optimus-0"]["licence"].startswith("Apache-2.0")


def test_an_encoder_is_made_and_reported(tmp_path, capsys):
    out = tmp_path / "plain.safetensors"
    arguments = ["--features", "classical-1", "--mpp", "1", "--tile", "224", "--name", "plain"]
    assert main(["encoder", "make", "--out", str(out), *arguments]) == 0
    assert "plain 1, 273 dimensions, patches of 224 px at 1.0 um/px" in capsys.readouterr().out
    assert load_encoder(str(out)).config.sampling.density == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--features", "classical-1", "--mpp", "0"], "--mpp: expected more than 0, got 0.0"),
        (["--features", "hub:uni3"], "unknown foundation model 'uni3'"),
        (["--features", "hub:gigapath"], "gigapath: its weights are not here; ask for access at"),
        (["--features", "classical-1", "--stain", "pink"], "unknown stain normalisation 'pink'"),
    ],
)
def test_an_invalid_encoder_is_refused_in_one_line(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.setenv("TESSERA_MODELS", str(tmp_path))
    out = tmp_path / "e.safetensors"
    assert main(["encoder", "make", "--out", str(out), *arguments]) == 2
    assert message in capsys.readouterr().err and not out.exists()


def test_an_unsupported_file_extension_raises_an_error(tmp_path, capsys):
    arguments = ["encoder", "make", "--features", "classical-1", "--out", str(tmp_path / "e.pt")]
    assert main(arguments) == 2
    assert "expected a name that ends in .safetensors" in capsys.readouterr().err

"""The first Python block of the client's README and of the guide, run on the demo's slides."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.client.conftest import SOURCES

ROOT = Path(__file__).resolve().parents[2]
PAGES = (SOURCES / "README.md", ROOT / "docs/guide/programmer.md")


def test_the_quickstarts_find_regions_of_the_demo(seat, tmp_path, monkeypatch, capsys):
    demo = seat.portal.ask("tests.client.demo_control", "slides", str(tmp_path / "var" / "demo"))
    assert demo["rois"] and not demo["failures"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESSERA_URL", seat.url)
    monkeypatch.setenv("TESSERA_TOKEN", demo["token"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for page in PAGES:
        code = re.search(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        assert code is not None
        text = code[1].replace("http://127.0.0.1:8000", seat.url)
        exec(compile(text.replace("tess_...", demo["token"]), page.name, "exec"), {})
        hits = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert [int(rank) for rank, *_ in hits] == list(range(1, len(hits) + 1))
        assert {accession for _, accession, _ in hits} == {"D-1001", "D-1002", "D-1003"}
    assert len(json.loads((tmp_path / "rois.geojson").read_text())["features"]) == 1

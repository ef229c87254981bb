"""The first Python block of the client's README, run as written on the demo's slides."""

from __future__ import annotations

import json
import re

from tests.client.conftest import SOURCES


def test_the_quickstart_of_the_readme_finds_regions_of_the_demo(
    seat, tmp_path, monkeypatch, capsys
):
    demo = seat.portal.ask("tests.client.demo_control", "slides", str(tmp_path / "var" / "demo"))
    assert demo["rois"] and not demo["failures"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESSERA_URL", seat.url)
    monkeypatch.setenv("TESSERA_TOKEN", demo["token"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = (SOURCES / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    exec(compile(code[1], "README.md", "exec"), {})
    hits = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [int(rank) for rank, *_ in hits] == list(range(1, len(hits) + 1))
    assert {accession for _, accession, _ in hits} == {"D-1001", "D-1002", "D-1003"}
    assert len(json.loads((tmp_path / "rois.geojson").read_text())["features"]) == 1

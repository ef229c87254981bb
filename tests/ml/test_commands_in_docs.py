"""Every command of ``ml`` that a page names is one that its parser takes."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ml.cli import COMMANDS, _parser

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?:bash|sh)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN = re.compile(r'^RUN="(.*)"$', re.MULTILINE)
LOOP = re.compile(r"^for (\w+) in (\w+)")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = "python -m ml "


def _blocks(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return "\n".join(FENCE.findall(text)).replace("\\\n", " ")


def _commands() -> Iterator[tuple[str, str]]:
    """Page and what follows the program's name; of a loop its first round."""
    run = RUN.findall(_blocks(ROOT / "docs" / "models" / "keypoints.md"))[0]
    for page in PAGES:
        known = {"RUN": run}
        for line in _blocks(page).splitlines():
            if loop := LOOP.match(line):
                known[loop[1]] = loop[2]
            command = re.sub(r"\$\(.*\)", "X", line.split(" #")[0].strip())
            for name, value in known.items():
                command = re.sub(rf"\${name}\b", lambda _, value=value: value, command)
            if command.startswith(PROGRAM):
                ends = re.split(r"\s(?:[|>]|&&|;)\s", command.removeprefix(PROGRAM))
                yield page.name, ends[0]


ALL = sorted(set(_commands()))


@pytest.mark.parametrize(("page", "command"), ALL, ids=[f"{p}: {c[:60]}" for p, c in ALL])
def test_commands_in_the_docs_are_parsed(
    page: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(command)
    name = next(word for word in words if not word.startswith("-"))
    assert name in COMMANDS
    module = importlib.import_module(f"ml.cli.{name}")
    try:
        _parser(name, module).parse_args(words)
    except SystemExit:
        pytest.fail(f"{page}: {command}\n{capsys.readouterr().err.splitlines()[-1]}")


def test_the_docs_contain_commands() -> None:
    assert len(ALL) > 40

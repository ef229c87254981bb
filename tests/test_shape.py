"""The shape of the tree: sizes of modules and folders, nothing written twice, the tree as drawn."""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
TS = sorted((ROOT / "static" / "src").rglob("*.ts"))
PYTHON = [
    path
    for package in ("ml", "portal")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "migrations" not in path.parts
]
TESTS = [*sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.ts"))]
LONGEST, MIDDLE, IN_A_FOLDER, TWICE = 350, 110, 16, 10
WIDER = {
    # One stage a file, read in the order of the pipeline: folders would cut most of its imports.
    "ml/mosaic",
    "tests/ml/mosaic",
    "tests/bench",  # `make bench` is one report, a module a part of it
}


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_module_is_too_long_and_half_of_them_are_short() -> None:
    lengths = {_name(path): len(_lines(path)) for path in (*PYTHON, *TS, *TESTS)}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}
    product = [lengths[_name(p)] for p in (*PYTHON, *TS) if p.name != "__init__.py"]
    assert median(product) <= MIDDLE


def test_no_folder_is_a_heap() -> None:
    held: dict[str, int] = defaultdict(int)
    for path in (*PYTHON, *TS, *TESTS):
        held[_name(path.parent)] += path.name not in {"__init__.py", "conftest.py"}
    assert {name: n for name, n in held.items() if n > IN_A_FOLDER}.keys() <= WIDER


def _runs(paths: Iterable[Path], count: int) -> dict[tuple[str, ...], list[str]]:
    """Where each run of so many lines stands; blank lines, comments and imports do not count."""
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path in paths:
        kept = [(n, line.strip()) for n, line in enumerate(_lines(path), 1) if _counts(line)]
        for first in range(len(kept) - count + 1):
            run = tuple(line for _, line in kept[first : first + count])
            places[run].append(f"{path}:{kept[first][0]}")
    return places


def _counts(line: str) -> bool:
    text = line.strip()
    return bool(re.search(r"\w", text)) and not re.match(r"(#|//|\*|import |from |export \{)", text)


def test_no_ten_lines_stand_twice_within_the_product() -> None:
    found = {run: at for run, at in _runs((*PYTHON, *TS), TWICE).items() if len(at) > 1}
    assert sorted({" and ".join(at) for at in found.values()}) == []


def test_lines_that_stand_twice_are_found(tmp_path: Path) -> None:
    body = "".join(f"value_{n} = {n}\n\n# why\n" for n in range(TWICE))
    for name, text in {"a.py": body, "b.py": f"import os\n{body}", "c.py": body[:60]}.items():
        (tmp_path / name).write_text(text)
    places = _runs(sorted(tmp_path.glob("*.py")), TWICE)
    assert [[Path(one).name for one in at] for at in places.values()] == [["a.py:1", "b.py:2"]]


_NUMBER = re.compile(r"(?:export )?(?:const )?_?[A-Z][A-Z0-9_]+(?:: [\w\[\]., ]+)? = -?[0-9]")
_CONSTANT = re.compile(r"(?:export )?(?:const )?_?[A-Z][A-Z0-9_, ]+(?:: [\w\[\]., ]+)? = ")


def _bare_numbers(path: Path) -> Iterator[str]:
    """Module constants that are numbers, with no words beside them or around their group."""
    lines = [*_lines(path), "", ""]
    for number, line in enumerate(lines):
        if not _NUMBER.match(line) or re.search(r"#|//", line):
            continue
        first, last = number, number
        while _CONSTANT.match(lines[first]):
            first -= 1
        while _CONSTANT.match(lines[last]):
            last += 1
        above, below = lines[first].strip(), lines[last]
        if not (above.startswith(("#", "//")) or above.endswith("*/") or below.startswith('"""')):
            yield f"{path.name}:{number + 1}: {line}"


_CLASS = {
    ".py": r"^class ([A-Z]\w+)",
    ".ts": r"^export (?:abstract )?(?:class|interface|type) (\w+)",
}


def _named_twice(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Names of public classes that stand in several modules; Django wants each ``Command``."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        for name in re.findall(_CLASS[path.suffix], path.read_text(), re.MULTILINE):
            found[name].append(path.name)
    return {name: at for name, at in found.items() if len(at) > 1 and name != "Command"}


def test_no_two_classes_share_a_name() -> None:
    assert (_named_twice(PYTHON), _named_twice(TS)) == ({}, {})


def test_a_name_that_two_classes_have_is_found(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("class Pair:\n    class Meta: ...\nclass _Own: ...\n")
    assert _named_twice(sorted(tmp_path.glob("*.py"))) == {"Pair": ["a.py", "b.py"]}


def test_a_class_has_its_look_in_one_file() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "static" / "css").rglob("*.css")):
        for name in re.findall(r"^(\.[a-z][\w-]*)(?= \{|,$)", path.read_text(), re.MULTILINE):
            files[name].add(_name(path))
    assert len(files) > 300
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_a_number_says_why_it_is_so() -> None:
    assert [found for path in (*PYTHON, *TS) for found in _bare_numbers(path)] == []


def test_a_number_without_words_is_found(tmp_path: Path) -> None:
    told = 'A = 1  # why\n\nB = 2\nC: int = 3\n"""Why."""\n\n# Both so.\nD_PX = 4\nE = 5\n'
    path = tmp_path / "a.py"
    path.write_text(f"{told}\nBARE_S = 6.0\nname = 7\n")
    assert list(_bare_numbers(path)) == ["a.py:11: BARE_S = 6.0"]


HOOKS = re.compile(r"(validate|clean)(_\w+)?|to_representation|_?get_\w+")
"""Methods that Django, the REST framework and its schema look for, with types of their own."""
CALLED_BY_DJANGO = ("context.py", "templatetags")  # modules of context processors, and of tags


def _of_any(path: Path) -> Iterator[str]:
    """Functions that give a dictionary of anything and are no hook of a framework.

    What a service or a selector gives is typed too, unless its name says that it is JSON.
    """
    if path.name in CALLED_BY_DJANGO or path.parent.name in CALLED_BY_DJANGO:
        return
    layers = {"services", "selectors", "tasks"} & {*path.with_suffix("").parts}
    words = ["dict[str, Any]", "Mapping[str, Any]"]
    if layers and "exchange" not in path.parts:  # other systems' documents are its business
        words.append("JsonObject")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    hooks = {
        one
        for one in itertools.chain.from_iterable(bodies)
        if isinstance(one, ast.FunctionDef) and HOOKS.fullmatch(one.name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns and node not in hooks:
            given = ast.unparse(node.returns)
            found = [word for word in words if word in given]
            if found and not (found == ["JsonObject"] and node.name.endswith("_json")):
                yield f"{path.name}:{node.lineno}: {node.name} -> {given}"


def test_what_a_function_gives_has_a_type() -> None:
    assert [found for path in PYTHON for found in _of_any(path)] == []


def test_a_dictionary_of_anything_is_found(tmp_path: Path) -> None:
    given = {
        "names": "list[dict[str, Any]]",
        "get_rows": "dict[str, Any]",
        "row_json": "JsonObject",
        "row": "JsonObject | None",
    }
    text = "".join(f"def {name}() -> {kind}: ...\n" for name, kind in given.items())
    text += "class Form:\n    def clean(self) -> dict[str, Any]: ...\n"
    for name in ("pages.py", "services.py", "context.py"):
        (tmp_path / name).write_text(text)
    found = [one for path in sorted(tmp_path.glob("*.py")) for one in _of_any(path)]
    assert found == [
        "pages.py:1: names -> list[dict[str, Any]]",
        "pages.py:2: get_rows -> dict[str, Any]",
        "services.py:1: names -> list[dict[str, Any]]",
        "services.py:2: get_rows -> dict[str, Any]",
        "services.py:4: row -> JsonObject | None",
    ]


def _drawn() -> Iterator[str]:
    """The folders that the tree of the architecture names, as paths."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = page.split("## Tree")[1].split("```")[1]
    top = ""
    for line in tree.splitlines():
        found = re.match(r"( *)([\w./<>-]+/)", line)
        if not found or "<" in found[2]:
            continue
        if not found[1]:
            top = found[2]
        yield found[2] if not found[1] else top + found[2]


def test_the_tree_of_the_architecture_is_the_tree() -> None:
    drawn = set(_drawn())
    assert [name for name in sorted(drawn) if not (ROOT / name).is_dir()] == []
    rooms = {
        f"{top}/{path.name}/"
        for top in ("portal", "ml")
        for path in (ROOT / top).iterdir()
        if (path / "__init__.py").exists()
    }
    assert rooms - drawn == set(), "docs/architecture.md does not name them"

"""The guide: built strictly, with its pictures, keys and settings, and served at /help/."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.guide_site import GUIDE, ROOT, build, guide_site

PAGES = sorted(GUIDE.rglob("*.md"))
VARIABLE = r"(?:TESSERA|OTEL)_[A-Z0-9_]+"
READERS = {"flag", "number", "one_of"}  # of portal.core.environment


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the portal serves, with the guide in it."""
    return guide_site(tmp_path_factory.mktemp("project"))


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n[Gone](gone.md)\n")
    (tmp_path / "zensical.toml").write_text('[project]\nsite_name = "Test"\n')
    assert build(tmp_path).returncode != 0


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "zensical.toml").read_text()
    named = set(re.findall(r'"([\w/-]+\.md)"', text))
    assert named == {str(page.relative_to(GUIDE)) for page in PAGES}


def test_every_picture_of_the_guide_is_shown_and_described() -> None:
    shown = set()
    for page in PAGES:
        for description, link in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text()):
            assert description, f"{page}: {link} has no description"
            picture = (page.parent / link).resolve()
            assert picture.exists(), f"{page}: {link}"
            shown.add(picture.name)
    taken = {path.name for path in (GUIDE / "pictures").glob("*.webp")}
    assert taken - shown == set()


def test_buttons_and_tabs_of_the_guide_are_on_pages() -> None:
    sources = [
        *(ROOT / "templates").rglob("*.html"),
        *(ROOT / "static" / "src").rglob("*.ts"),
        *(ROOT / "portal").rglob("*.py"),
    ]
    on_pages = " ".join(" ".join(path.read_text() for path in sources).split())
    missing = []
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`]*`|\\\*", "", page.read_text(), flags=re.DOTALL)
        for italic in re.findall(r"(?<![*\w])\*([^*]+)\*(?!\*)", text):
            for name in " ".join(italic.split()).split(" > "):
                parts = re.split(" ?… ?", name)  # a count or a name in the middle
                if not all(part in on_pages for part in parts):
                    missing.append((page.name, name))
    assert missing == []


def test_a_page_of_the_site_asks_no_other_host(site: Path) -> None:
    loads = r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"|<link[^>]*\shref="([^"]+)"'
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        for address in re.findall(loads, page.read_text()):
            assert not re.match(r"(?:https?:)?//", "".join(address)), f"{page}: {address}"


@pytest.fixture
def guided(site: Path, settings: Any) -> Client:
    """A client of a portal whose guide is built."""
    settings.WHITENOISE_ROOT = site
    return Client()


def test_anybody_can_read_the_guide(guided: Client) -> None:
    response = guided.get("/help/")
    assert response.status_code == 200
    assert "frame-ancestors 'none'" in response["Content-Security-Policy"]
    assert guided.get("/help/pathologist/").status_code == 200


@pytest.mark.django_db
def test_the_sign_in_page_leads_to_the_guide(guided: Client) -> None:
    assert 'href="/help/"' in guided.get("/accounts/login/").content.decode()


@pytest.mark.django_db
def test_every_page_leads_to_the_guide(guided: Client, viewer: Any) -> None:
    guided.force_login(viewer)
    assert 'href="/help/"' in guided.get("/cases/").content.decode()


@pytest.mark.django_db
def test_a_portal_without_the_guide_says_how_to_build_it(client: Client) -> None:
    response = client.get("/help/pathologist/")
    assert response.status_code == 404
    assert "make docs" in response.content.decode()


@pytest.mark.django_db
def test_a_page_that_the_guide_lacks_is_not_found(guided: Client) -> None:
    response = guided.get("/help/nothing/")
    assert response.status_code == 404
    assert "make docs" not in response.content.decode()


def rows_of(page: str) -> Iterator[list[str]]:
    """Cells of the rows of all tables on a page."""
    for line in (GUIDE / "reference" / page).read_text().splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            yield [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def listed_settings() -> dict[str, str]:
    """The settings of the page, with what it says of their defaults."""
    links = {}
    for first, default, *_ in rows_of("settings.md"):
        names = re.findall(f"`({VARIABLE})`", first)
        defaults = default.split(", ")
        for n, name in enumerate(names):
            links[name] = defaults[n] if len(defaults) == len(names) else default
    return links


def constants_of(path: Path) -> set[str]:
    """Text constants of a module."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {str(node.value) for node in nodes if isinstance(node, ast.Constant)}


def test_the_page_of_settings_lists_what_the_code_reads_and_nothing_else() -> None:
    modules = (*ROOT.glob("portal/**/*.py"), *ROOT.glob("ml/**/*.py"))
    read = {text for path in modules for text in constants_of(path) if re.fullmatch(VARIABLE, text)}
    for path in (ROOT / "docker").iterdir():
        read |= set(re.findall(rf"\$\{{?({VARIABLE})", path.read_text()))
    prefixes = {name for name in read if name.endswith("_")}  # the code puts their ends together
    tests = {text for path in ROOT.glob("tests/**/*.py") for text in constants_of(path)}
    listed = set(listed_settings())
    assert read - prefixes - listed == set()
    assert {name for name in listed - read - tests if not name.startswith(tuple(prefixes))} == set()


def defaults_of_the_code() -> Iterator[tuple[str, Any]]:
    """Settings that are read with a default that is a constant."""
    for path in ROOT.glob("portal/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name = getattr(node.args[0], "value", None)
            default = next(
                (keyword.value for keyword in node.keywords if keyword.arg == "default"), None
            )
            if called not in READERS or default is None or not isinstance(name, str):
                continue
            if not any(isinstance(part, ast.Name) for part in ast.walk(default)):
                yield name, eval(ast.unparse(default))  # numbers such as 100 * 2**30


def as_written(default: Any) -> str:
    """A default as the page writes it."""
    if isinstance(default, (bool, str)):
        return str(int(default)) if isinstance(default, bool) else default
    for size, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if default >= size and default % size == 0:
            return f"{default // size} {unit}"
    return f"{default:g}"


def test_the_defaults_on_the_page_of_settings_are_those_of_the_code() -> None:
    listed, read = listed_settings(), dict(defaults_of_the_code())
    assert len(read) > 20
    for name, default in read.items():
        wanted = re.escape(as_written(default))
        assert re.search(rf"(?<![\w.]){wanted}(?![\w.])", listed[name]), (name, default)


def test_the_page_of_keys_has_the_keys_of_the_viewer() -> None:
    listed = {(key.strip("`"), does) for key, does in rows_of("keys.md")}
    for folder in ("workbench", "compare"):
        source = (ROOT / "static" / "src" / "viewer" / folder / "key_bindings.ts").read_text()
        pairs = re.findall(
            r'display: (?:\w+ \? )?"([^"]+)"(?: : "[^"]+")?, *does: "([^"]+)"', source
        )
        assert len(pairs) > 10
        assert set(pairs) - listed == set()

"""Nothing turns data into code or text into markup, except the named exceptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [
    ROOT / "manage.py",
    *(path for package in ("portal", "ml") for path in sorted((ROOT / package).rglob("*.py"))),
]
MODULES = {"cPickle", "cloudpickle", "dill", "jsonpickle", "marshal", "pickle", "shelve", "xmlrpc"}
CALLS = {"eval", "exec", "compile", "__import__"}
UNSAFE = {
    "joblib.load": "runs what the file says",
    "mark_safe": "each part must be escaped where it is made",
    "os.popen": "a shell",
    "os.system": "a shell",
    "subprocess.getoutput": "a shell",
    "subprocess.getstatusoutput": "a shell",
    "yaml.load": "use yaml.safe_load",
    "yaml.unsafe_load": "use yaml.safe_load",
}
ALLOWED = {
    # UnpicklingError is what torch.load(weights_only=True) raises on anything but tensors.
    "ml/roi/encoders/foundation.py: import of pickle",
    # Joins templates that were rendered, and so escaped, before.
    "portal/archive/extensions.py: mark_safe",
}
TEMPLATES_ALLOWED = {
    # A help text of our own forms; no input gets there.
    "core/_field.html: {{ field.help_text|safe }}",
}


def _found(source: str, name: str) -> Iterator[str]:
    """Forbidden constructs of a module, as ``name: construct``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for module in names:
                if module.partition(".")[0] in MODULES:
                    yield f"{name}: import of {module}"
        if isinstance(node, ast.Call):
            yield from (f"{name}: {what}" for what in _call(node))


def _call(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    options = {option.arg: ast.unparse(option.value) for option in node.keywords}
    if isinstance(node.func, ast.Name) and called in CALLS:
        yield called
    if called in UNSAFE:
        yield called
    if called.endswith("torch.load") and options.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if options.get("allow_pickle", "False") != "False":
        yield "allow_pickle"
    if options.get("shell", "False") != "False":
        yield "shell"
    if options.get("trust_remote_code", "False") != "False":
        yield "trust_remote_code"


def test_no_module_runs_data_or_trusts_text() -> None:
    violations = {
        what
        for path in SOURCES
        for what in _found(path.read_text(), path.relative_to(ROOT).as_posix())
    }
    assert violations - ALLOWED == set()
    assert ALLOWED - violations == set(), "these exceptions are no more"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import pickle", "import of pickle"),
        ("from marshal import loads", "import of marshal"),
        ("torch.load(path)", "torch.load without weights_only=True"),
        ("torch.load(path, weights_only=False)", "torch.load without weights_only=True"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
        ("yaml.load(text)", "yaml.load"),
        ("eval(text)", "eval"),
        ("exec(text)", "exec"),
        ("subprocess.run(line, shell=True)", "shell"),
        ("os.system(line)", "os.system"),
        ("mark_safe(text)", "mark_safe"),
        ("AutoModel.from_pretrained(name, trust_remote_code=True)", "trust_remote_code"),
    ],
)
def test_each_of_them_is_found(source: str, what: str) -> None:
    assert list(_found(source, "m.py")) == [f"m.py: {what}"]


@pytest.mark.parametrize(
    "source",
    ["model.eval()", "torch.load(p, weights_only=True)", "re.compile(p)", "yaml.safe_load(text)"],
)
def test_harmless_code_is_allowed(source: str) -> None:
    assert list(_found(source, "m.py")) == []


def test_no_template_trusts_text() -> None:
    unsafe = re.compile(r"\{\{[^}]*\|\s*(?:safe|safeseq)\b[^}]*\}\}|\{% autoescape off %\}")
    names = set()
    for path in sorted((ROOT / "templates").rglob("*")):
        if path.is_file() and path.suffix == ".html":  # mails are plain text
            name = path.relative_to(ROOT / "templates").as_posix()
            names |= {f"{name}: {match}" for match in unsafe.findall(path.read_text())}
    assert names == TEMPLATES_ALLOWED


def test_no_script_builds_markup_from_text() -> None:
    unsafe = re.compile(
        r"\.(?:innerHTML|outerHTML)\s*=|insertAdjacentHTML|document\.write|\beval\("
    )
    paths = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "static" / "src").rglob("*.ts")
        if unsafe.search(path.read_text())
    }
    assert paths == set()


def test_no_stored_or_sent_data_is_pickled() -> None:
    """Sessions, cache and messages of jobs: whoever can write there must not run code."""
    from django.conf import settings

    from portal.core.caches import JsonSerializer

    assert settings.CELERY_ACCEPT_CONTENT == ["json"]
    assert settings.SESSION_SERIALIZER == "django.contrib.sessions.serializers.JSONSerializer"
    assert JsonSerializer().loads(JsonSerializer().dumps({"a": [1, "b"]})) == {"a": [1, "b"]}

"""``python -m ml``: exit codes, one clear line, JSON, and a quick ``--help``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios

import numpy as np
import pytest

from ml.cli import COMMANDS, main
from ml.cli.output import terminal_progress
from ml.types import no_progress


@pytest.fixture
def vectors(tmp_path):
    v = np.eye(4, dtype=np.float32)
    np.save(tmp_path / "v.npy", v)
    return tmp_path / "v.npy"


def test_help_lists_every_command_without_importing_it():
    code = (
        "import sys; from ml.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as e: assert e.code == 0\n"
        "assert 'torch' not in sys.modules and 'ml.cli.index' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)


def test_build_info_and_search_round_trip(tmp_path, vectors, capsys):
    folder = str(tmp_path / "index")
    assert main(["index", "build", folder, str(vectors), "--tag", "demo"]) == 0
    out = tmp_path / "info.json"
    assert main(["index", "info", folder, "--json", str(out)]) == 0
    info = json.loads(out.read_text())
    assert (info["count"], info["dim"], info["tag"], info["version"]) == (4, 4, "demo", 1)
    capsys.readouterr()
    (tmp_path / "no.txt").write_text("1\n")
    arguments = ["index", "search", folder, str(vectors), "--row", "1", "-k", "2"]
    assert main([*arguments, "--excluded", str(tmp_path / "no.txt"), "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [hit["id"] for hit in report["results"]] == [0, 2]
    assert main(arguments) == 0
    assert capsys.readouterr().out.split() == ["1", "0.000000", "0", "1.414214"]


def test_ids_may_come_with_the_vectors_or_separately(tmp_path, capsys):
    np.savez(tmp_path / "v.npz", vectors=np.eye(2), ids=[10, 20])
    folder = str(tmp_path / "index")
    assert main(["index", "build", folder, str(tmp_path / "v.npz")]) == 0
    np.save(tmp_path / "q.npy", np.array([0.0, 1.0]))
    capsys.readouterr()
    assert main(["index", "search", folder, str(tmp_path / "q.npy"), "-k", "1"]) == 0
    assert capsys.readouterr().out.split()[0] == "20"


def test_a_query_that_holds_no_vectors_is_named(tmp_path, vectors, capsys):
    folder = str(tmp_path / "index")
    assert main(["index", "build", folder, str(vectors)]) == 0
    np.savez(tmp_path / "q.npz", rows=np.eye(4))
    assert main(["index", "search", folder, str(tmp_path / "q.npz")]) == 2
    assert "error: q.npz: expected an array named 'vectors'" in capsys.readouterr().err


BAD = [
    (["index", "info", "{tmp}/nowhere"], "nowhere: no such folder"),
    (["index", "info", "{tmp}"], "holds no index"),
    (["index", "build", "{tmp}/i", "{tmp}/missing.npy"], "missing.npy: no such file"),
    (["index", "build", "{tmp}/i", "{tmp}/text.npy"], "text.npy: expected NumPy"),
    (["index", "build", "{tmp}/i", "{tmp}/v.npy", "--ids", "{tmp}/text.txt"], "whole number"),
    (["index", "build", "{tmp}/i", "{tmp}/v.npy", "--json", "{tmp}/no/o.json"], "no such dir"),
    (["index", "build", "{tmp}/i", "{tmp}/v.npy", "--json", "{tmp}"], "is a directory"),
    (["index", "build", "{tmp}/i", "{tmp}/zip.npz"], "zip.npz: expected NumPy"),
    (["index", "build", "{tmp}/i", "{tmp}/other.npz"], "expected an array named 'vectors'"),
    (["index", "build", "{tmp}/i", "{tmp}/v.npy", "--ids", "{tmp}/named.npy"], "named 'vectors'"),
]


@pytest.mark.parametrize(("words", "text"), BAD)
def test_invalid_input_ends_with_one_line_and_exit_code_2(tmp_path, vectors, words, text, capsys):
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "text.txt").write_text("one\ntwo\n")
    (tmp_path / "zip.npz").write_bytes(b"PK\x03\x04broken")
    np.savez(tmp_path / "other.npz", rows=np.eye(2))
    (tmp_path / "named.npy").write_bytes((tmp_path / "other.npz").read_bytes())
    assert main([word.format(tmp=tmp_path) for word in words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert text in error
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize("words", [[], ["nonsense"], ["index"], ["index", "build"]])
def test_a_wrong_command_line_ends_with_exit_code_2(words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2


def test_ctrl_c_ends_with_exit_code_130(tmp_path, monkeypatch, capsys):
    import ml.cli.index

    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(ml.cli.index, "run", interrupted)
    assert main(["index", "info", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_closed_pipe_is_no_error(tmp_path, vectors):
    main(["index", "build", str(tmp_path / "i"), str(vectors)])
    child = subprocess.Popen(
        [sys.executable, "-m", "ml", "index", "info", str(tmp_path / "i")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child.stdout.close()
    assert child.wait(60) == 0
    assert child.stderr.read() == b""
    child.stderr.close()


def test_an_unexpected_error_is_not_reported_as_invalid_input(tmp_path, monkeypatch):
    import ml.cli.index

    def bug(args):
        raise ZeroDivisionError

    monkeypatch.setattr(ml.cli.index, "run", bug)
    with pytest.raises(ZeroDivisionError):
        main(["index", "info", str(tmp_path)])


def test_progress_is_drawn_on_a_terminal_only(capsys):
    with terminal_progress() as progress:
        assert progress is no_progress
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    code = (
        "from ml.cli.output import terminal_progress\n"
        "with terminal_progress() as p: p(1, 4, 'frames')"
    )
    subprocess.run([sys.executable, "-c", code], stderr=slave, check=True)
    drawn = os.read(master, 4096)  # before the other end closes, and takes its text along
    os.close(slave)
    os.close(master)
    assert b"frames" in drawn


def test_the_command_keeps_the_default_handler_of_sigint(tmp_path):
    # SIGINT's default handler must not have been replaced.
    code = "import signal, ml.__main__; print(signal.getsignal(signal.SIGINT).__name__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == signal.default_int_handler.__name__

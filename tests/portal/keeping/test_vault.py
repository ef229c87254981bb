"""The folder that backups go to."""

from __future__ import annotations

from pathlib import Path

from portal.keeping.vault import Vault


def test_a_content_is_copied_once_and_again_where_its_copy_is_cut_short(tmp_path: Path) -> None:
    vault, source = Vault(tmp_path / "vault"), tmp_path / "slide.tif"
    source.write_bytes(b"tissue" * 1000)
    with vault.locked():
        sha256, size_bytes, is_new = vault.put(source)
        assert (size_bytes, is_new) == (6000, True)
        copy = vault.object_path(sha256)
        first = copy.stat()
        assert vault.put(source) == (sha256, 6000, False)
        assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
        copy.unlink()
        copy.write_bytes(b"tissue")
        assert vault.put(source) == (sha256, 6000, True)
        assert copy.read_bytes() == source.read_bytes()
    assert [path.name for path in vault.objects.glob("**/*") if path.is_file()] == [sha256]

"""An RO-Crate 1.1, as a zip or a folder: files with their hashes, and metadata that name them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from ml.types import JsonObject

METADATA = "ro-crate-metadata.json"
VERSION = "tessera-case-1"  # of the names of files and columns; raise it when they change
CHUNK_BYTES = 2**20  # read, hashed and written at a time
_PROFILE = "https://w3id.org/ro/crate/1.1"
_CONTEXT = [f"{_PROFILE}/context", {"sha256": "https://schema.org/sha256"}]
_TERMS = {
    "@id": "#terms",
    "@type": "CreativeWork",
    "name": "No licence",
    "description": "Records of a lab, handed over for its own use; they are not published.",
}


class CrateWriter:
    """Write a crate file by file; ``finish`` writes the metadata, which names all files.

    Args:
        path: Path of the zip or of the folder to make.
        on_bytes: Called with the number of bytes written; an exception it raises ends the writing.
    """

    def __init__(
        self, path: Path, *, on_bytes: Callable[[int], None], as_folder: bool = False
    ) -> None:
        self._path, self._on_bytes = path, on_bytes
        self._zip = None if as_folder else zipfile.ZipFile(path, "w", allowZip64=True)
        self._entities: list[JsonObject] = []
        self._terms: list[JsonObject] = []

    def add_file(self, name: str, source: Path, *, media_type: str, about: str) -> str:
        """A file as it is, not compressed: images and videos are already. Returns its SHA-256."""
        with source.open("rb") as file:
            chunks = iter(lambda: file.read(CHUNK_BYTES), b"")
            counted = self._count_bytes(chunks)
            return self._add(name, counted, zipfile.ZIP_STORED, media_type, about)

    def add_rows(self, name: str, rows: Iterable[JsonObject], *, about: str) -> int:
        """JSON lines, compressed. Returns how many."""
        count = 0

        def lines() -> Iterator[bytes]:
            nonlocal count
            for row in rows:
                count += 1
                yield json.dumps(row, ensure_ascii=False).encode() + b"\n"

        self._add(name, lines(), zipfile.ZIP_DEFLATED, "application/x-ndjson", about)
        return count

    def add_term(self, name: str, *, term: str, code: str, system: str) -> None:
        """Add a coded term as a subject of the crate."""
        self._terms.append(
            {
                "@id": f"#{name}",
                "@type": "DefinedTerm",
                "name": term,
                "termCode": code,
                "inDefinedTermSet": system,
            }
        )

    def finish(self, *, identifier: str, name: str, description: str, made_at: str) -> None:
        """Write the metadata and close the zip."""
        root = {
            "@id": "./",
            "@type": "Dataset",
            "identifier": identifier,
            "schemaVersion": VERSION,
            "name": name,
            "description": description,
            "datePublished": made_at,
            "license": {"@id": _TERMS["@id"]},
            "hasPart": [{"@id": entity["@id"]} for entity in self._entities],
        }
        if self._terms:
            root["about"] = [{"@id": term["@id"]} for term in self._terms]
        head = {
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": {"@id": _PROFILE},
            "about": {"@id": "./"},
        }
        graph = [head, root, _TERMS, *self._terms, *self._entities]
        text = json.dumps({"@context": _CONTEXT, "@graph": graph}, ensure_ascii=False, indent=1)
        with self._open(METADATA, zipfile.ZIP_DEFLATED) as file:
            file.write(text.encode())
        self.close()

    def close(self) -> None:
        """Let go of the file, finished or not; twice is harmless."""
        if self._zip is not None:
            self._zip.close()

    def _open(self, name: str, compression: int) -> IO[bytes]:
        if self._zip is not None:
            return self._zip.open(_info(name, compression), "w", force_zip64=True)
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")

    def _count_bytes(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            self._on_bytes(len(chunk))

    def _add(
        self, name: str, chunks: Iterable[bytes], compression: int, media_type: str, about: str
    ) -> str:
        hashed, size = hashlib.sha256(), 0
        with self._open(name, compression) as file:
            for chunk in chunks:
                file.write(chunk)
                hashed.update(chunk)
                size += len(chunk)
        self._entities.append(
            {
                "@id": name,
                "@type": "File",
                "name": about,
                "encodingFormat": media_type,
                "contentSize": str(size),
                "sha256": hashed.hexdigest(),
            }
        )
        return hashed.hexdigest()


def _info(name: str, compression: int) -> zipfile.ZipInfo:
    """Entry of the zip with a fixed time, so that equal contents give equal files."""
    info = zipfile.ZipInfo(name)
    info.compress_type = compression
    info.external_attr = 0o644 << 16  # a plain file that its owner may change
    return info

"""Files of a crate, taken out into a folder from which one rename puts them in place.

An import that was killed finds there what it had taken out, and trusts it by its hash.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ml.errors import BadInputError
from ml.files import replacing
from ml.imaging.formats.sniff import FileKind
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from ml.types import JsonObject, Progress, no_progress
from portal.archive import inspection
from portal.archive.models import Asset, Canvas, Slide
from portal.archive.selectors.intake import asset_received
from portal.archive.services.quotas import require_quota
from portal.archive.services.uploads import MEDIA_TYPES, content_kind, content_kind_of
from portal.archive.storage import files as storage
from portal.core.disk import full_disk_refused, require_room
from portal.interop.rocrate.formats.reader import CrateError, CrateReader, shown
from portal.interop.rocrate.selectors.exports import import_folder
from portal.interop.rocrate.services.imports.checks import mosaic_file
from portal.interop.rocrate.services.imports.rows import CaseRows

_PICTURES = (".png", ".jpg")
_NAMES = (*_PICTURES, ".tif", ".json")
_BUSY = "another process is importing this case; try again when it is done"


_MIN_CPU_S = 600  # for inspecting a crate: unpacking and parsing of its records
_S_PER_MIB = 0.05  # of processor time: 20 MB/s, a tenth of what a slow core hashes


def crate_look(source: Path, name: str, *, progress: Progress) -> None:
    """Open a crate in a confined child before any other process reads it.

    Raises:
        CrateError: it is damaged, of another version, or made to do harm; or takes too much.
        OSError: it cannot be read.
    """
    size_mib = sum(file.stat().st_size for file in _files(source)) / 2**20
    cpu_s = _MIN_CPU_S + round(size_mib * _S_PER_MIB)
    limits = Limits(cpu_s=cpu_s, wall_s=4.0 * cpu_s, file_bytes=2**20)
    target = "portal.interop.rocrate.formats.opening:crate_open"
    try:
        refused = run_limited(
            target,
            {"path": str(source), "name": name},
            reads=(source,),
            limits=limits,
            progress=progress,
        )
    except BadInputError as error:
        raise CrateError(f"{name}: {error}.") from error
    if refused:
        raise CrateError(str(refused["message"]), code=str(refused["code"]))


def _files(source: Path) -> list[Path]:
    return [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else [source]


@contextmanager
def staging_held(folder: Path) -> Iterator[Path]:
    """Lock the folder of an import for this process: two crates may hold the same case.

    Raises:
        BlockingIOError: another process imports this case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(_BUSY) from error
        if not _is_at(folder, folder_fd):
            raise BlockingIOError(_BUSY)
        try:
            yield folder
        finally:
            if _is_at(folder, folder_fd):  # a later import may have created the folder again
                with suppress(OSError):  # unpacked files stay for the next attempt
                    folder.rmdir()
    finally:
        os.close(folder_fd)


def _is_at(folder: Path, folder_fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(folder_fd), folder.stat())
    except FileNotFoundError:
        return False


def staging_keep(rows: CaseRows) -> None:
    """Touch the staging folder, because the sweep deletes old ones."""
    folder = import_folder(rows.lab.pk, rows.case.pk)
    if folder.exists():
        os.utime(folder)


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A file to be placed.

    Attributes:
        existing_asset: the lab's asset with the same bytes; those of the crate are not needed then.
        path: where the bytes are, if they have to be placed.
    """

    asset: Asset
    kind: FileKind
    existing_asset: Asset | None
    path: Path | None

    @property
    def sha256(self) -> str:
        """SHA-256 of the stored file."""
        return self.existing_asset.sha256 if self.existing_asset else self.asset.sha256


def originals_stage(rows: CaseRows, *, frees_bytes: int) -> list[PlacedFile]:
    """Extract the originals that the lab lacks; each was inspected in the sandbox, as an upload is.

    Fills in ``rows.assets``.

    Args:
        frees_bytes: of the lab's quota, once the import is done.
    Raises:
        CrateError: not the kind that its record says.
        InvalidInputError: a kind not opened here.
        StorageFullError, TooLargeInputError: before anything was written.
    """
    assets = sorted(rows.originals.values(), key=lambda original: original.sha256)
    stored = {original.pk: asset_received(rows.lab.pk, original.sha256) for original in assets}
    new = [original for original in assets if stored[original.pk] is None]
    for asset in new:
        storage.require_size(asset.size_bytes)
    folder = import_folder(rows.lab.pk, rows.case.pk) / "originals"
    size_bytes = sum(original.size_bytes for original in new)
    require_quota(rows.lab.pk, size_bytes, frees_bytes=frees_bytes)
    require_room(
        sum(original.size_bytes for original in new if not (folder / original.sha256).exists())
    )
    staged = []
    for asset in assets:
        existing, path = stored[asset.pk], folder / asset.sha256
        if existing is None:
            file_take(rows.crate, f"originals/{asset.sha256}", path)
            kind = content_kind(path, filename=asset.sha256)
        else:
            rows.crate.passed(f"originals/{asset.sha256}")
            kind = content_kind_of(existing)
        row = existing or Asset.objects.filter(lab=rows.lab, sha256=asset.sha256).first()
        if row is not None:  # its file may be missing
            rows.assets[asset.pk] = row.pk
        elif Asset.objects.filter(pk=asset.pk).exists():  # of another lab: cases share files
            rows.assets[asset.pk] = uuid.uuid4()
        asset.media_type = MEDIA_TYPES[kind]
        for item in rows.items.values():
            if item.asset_id == asset.pk and isinstance(item, Slide) == (kind == "video"):
                raise CrateError(f"originals/{asset.sha256} is not what its record says: {kind}.")
        staged.append(PlacedFile(asset, kind, existing, None if existing else path))
    return staged


def mosaics_stage(rows: CaseRows) -> dict[str, Path]:
    """A folder for each mosaic that has files, by its id; pictures were opened in the sandbox."""
    folders: dict[str, Path] = {}
    staged = import_folder(rows.lab.pk, rows.case.pk)
    _drop_others(staged, rows.crate)
    ids = {str(pk) for pk in rows.mosaics}
    names = [name for name in rows.crate.files if name.startswith("mosaics/")]
    missing = [name for name in names if not (staged / name).exists()]
    require_room(sum(rows.crate.files[name].size_bytes for name in missing))
    for name in names:
        _, mosaic, *parts = name.split("/")
        if mosaic not in ids or not parts or Path(name).suffix not in _NAMES:
            raise CrateError(f"{shown(name)} is not a file of a mosaic in the crate.")
        path = staged / name
        file_take(rows.crate, name, path)
        if path.suffix in _PICTURES and _kind(path, name) != "still":
            raise CrateError(f"{shown(name)} is not a picture.")
        folders[mosaic] = staged / "mosaics" / mosaic
    for component in rows.components.values():
        canvas = rows.canvases[component.canvas_id]
        name = mosaic_file(component, canvas.pixels_path, rows.crate, ".tif")
        canvas.levels = _pyramid_levels(staged, name, canvas)
        canvas.content_hash = rows.crate.files[name].sha256
    return folders


def _drop_others(folder: Path, crate: CrateReader) -> None:
    """Delete partial files of mosaics, and those that another crate of the same case had."""
    for path in (folder / "mosaics").rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in crate.files:
            path.unlink()


def file_take(crate: CrateReader, name: str, path: Path) -> None:
    """Write a file of the crate, verified and on the disk, unless those bytes are there already."""
    listed = crate.files[name]
    is_there = path.is_file() and path.stat().st_size == listed.size_bytes
    if is_there and storage.file_sha256(path) == listed.sha256:
        crate.passed(name)
        return
    written = 0
    with full_disk_refused():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=True) as new, new.open("wb") as file:
            for chunk in crate.chunks(name):
                file.write(chunk)
                written += len(chunk)
                if written >= storage.ROOM_EVERY_BYTES:
                    written = 0
                    require_room()


def _kind(path: Path, name: str) -> str:
    try:
        return inspection.file_kind(path)
    except BadInputError as error:
        raise CrateError(f"{shown(name)}: {error}.") from error


def _pyramid_levels(folder: Path, name: str, canvas: Canvas) -> list[JsonObject]:
    """The tile grid as a confined child finds it, not as the crate says it."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            inspected = inspection.slide_inspect(folder / name, Path(scratch), progress=no_progress)
        except BadInputError as error:
            raise CrateError(f"{shown(name)}: {error}.") from error
    size_px = (canvas.width_px, canvas.height_px)
    if inspected.pixels is not None or (inspected.width_px, inspected.height_px) != size_px:
        raise CrateError(f"{shown(name)} is not the pyramid of its canvas.")
    return [asdict(level) for level in inspected.levels]

"""Files of a crate, taken out into a folder from which one rename puts them in place.

An import that was killed finds there what it had taken out, and believes it by its hash.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ml.errors import BadInputError
from ml.files import replacing
from ml.imaging.formats.sniff import FileKind
from ml.types import no_progress
from portal.archive import inspection, storage
from portal.archive.models import Asset, Canvas, Slide
from portal.archive.selectors.intake import asset_received
from portal.archive.services import MEDIA_TYPES, content_kind, content_kind_of, require_quota
from portal.core.disk import full_disk_refused, require_room
from portal.exchange.formats.crate_reading import CrateError, CrateReader, WentOn, shown
from portal.exchange.services.import_rows import CaseRows, mosaic_file

_PICTURES = (".png", ".jpg")
_NAMES = (*_PICTURES, ".tif", ".json")


def staging_folder(rows: CaseRows) -> Path:
    """With scratch, so that the sweep takes what nobody went on with."""
    return storage.root() / "scratch" / f"import-{rows.lab.pk}-{rows.case.pk}"


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A file to be placed.

    Attributes:
        ours: what the lab keeps of these bytes already, so that none are taken out of the crate.
        path: the bytes, where they have to be placed.
    """

    asset: Asset
    kind: FileKind
    ours: Asset | None
    path: Path | None

    @property
    def sha256(self) -> str:
        """Under which it is kept."""
        return self.ours.sha256 if self.ours else self.asset.sha256


def originals_stage(rows: CaseRows, went_on: WentOn) -> list[PlacedFile]:
    """Take out what the lab has not; each was looked at in the sandbox, as an upload is.

    Fills in ``rows.assets``.

    Raises:
        CrateError: another kind of file than its record says. InvalidInputError: none we open.
        StorageFullError, TooLargeInputError: before anything was written.
    """
    assets = sorted(rows.originals.values(), key=lambda one: one.sha256)
    kept = {one.pk: asset_received(rows.lab.pk, one.sha256) for one in assets}
    new = [one for one in assets if kept[one.pk] is None]
    for asset in new:
        storage.require_size(asset.size_bytes)
    folder = staging_folder(rows) / "originals"
    require_quota(rows.lab.pk, sum(one.size_bytes for one in new))
    require_room(sum(one.size_bytes for one in new if not (folder / one.sha256).exists()))
    staged = []
    for asset in assets:
        ours, path = kept[asset.pk], folder / asset.sha256
        if ours is None:
            file_take(rows.crate, f"originals/{asset.sha256}", path, went_on)
            kind = content_kind(path, filename=asset.sha256)
        else:
            kind = content_kind_of(ours)
        row = ours or Asset.objects.filter(lab=rows.lab, sha256=asset.sha256).first()
        if row is not None:  # without its bytes, perhaps
            rows.assets[asset.pk] = row.pk
        asset.media_type = MEDIA_TYPES[kind]
        for item in rows.items.values():
            if item.asset_id == asset.pk and isinstance(item, Slide) == (kind == "video"):
                raise CrateError(f"originals/{asset.sha256} is not what its record says: {kind}.")
        staged.append(PlacedFile(asset, kind, ours, None if ours else path))
    return staged


def mosaics_stage(rows: CaseRows, went_on: WentOn) -> dict[str, Path]:
    """A folder for each mosaic that has files, by its id; pictures were opened in the sandbox."""
    found: dict[str, Path] = {}
    _drop_others(rows)
    ids = {str(pk) for pk in rows.mosaics}
    names = [name for name in rows.crate.files if name.startswith("mosaics/")]
    missing = [name for name in names if not (staging_folder(rows) / name).exists()]
    require_room(sum(rows.crate.files[name].size_bytes for name in missing))
    for name in names:
        _, mosaic, *rest = name.split("/")
        if mosaic not in ids or not rest or Path(name).suffix not in _NAMES:
            raise CrateError(f"{shown(name)} is no file of a mosaic of the crate.")
        path = staging_folder(rows) / name
        file_take(rows.crate, name, path, went_on)
        if path.suffix in _PICTURES and _kind(path, name) != "still":
            raise CrateError(f"{shown(name)} is no picture.")
        found[mosaic] = staging_folder(rows) / "mosaics" / mosaic
    for component in rows.components.values():
        canvas = rows.canvases[component.canvas_id]
        name = mosaic_file(component, canvas.pixels_path, rows.crate, ".tif")
        canvas.levels = _pyramid_levels(staging_folder(rows), name, canvas)
        canvas.content_hash = rows.crate.files[name].sha256
    return found


def _drop_others(rows: CaseRows) -> None:
    """Of mosaics: halves of files, and what another crate of the same case had."""
    folder = staging_folder(rows)
    for path in (folder / "mosaics").rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in rows.crate.files:
            path.unlink()


def file_take(crate: CrateReader, name: str, path: Path, went_on: WentOn) -> None:
    """Write a file of the crate, verified and on the disk, unless those bytes are there already."""
    known = crate.files[name]
    is_there = path.is_file() and path.stat().st_size == known.size_bytes
    if is_there and storage.file_sha256(path) == known.sha256:
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
                went_on(len(chunk))


def _kind(path: Path, name: str) -> str:
    try:
        return inspection.file_kind(path)
    except BadInputError as error:
        raise CrateError(f"{shown(name)}: {error}.") from error


def _pyramid_levels(folder: Path, name: str, canvas: Canvas) -> list[dict[str, Any]]:
    """The tile grid as a confined child finds it, not as the crate says it."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        try:
            found = inspection.slide_inspect(folder / name, Path(made), progress=no_progress)
        except BadInputError as error:
            raise CrateError(f"{shown(name)}: {error}.") from error
    size_px = (canvas.width_px, canvas.height_px)
    if found.pixels is not None or (found.width_px, found.height_px) != size_px:
        raise CrateError(f"{shown(name)} is not the pyramid of its canvas.")
    return [asdict(level) for level in found.levels]

# Written by unasync.py from aio/rois.py: change that one.
"""Regions of interest: draw, change, list, import and export them."""

from __future__ import annotations

import json as json_text
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tessera_client import request_rules
from tessera_client.concurrency import call
from tessera_client.models import Canvas, Roi, ThreadEntry, id_of
from tessera_client.parsing import parse
from tessera_client.shapes import geojson_of
from tessera_client.sync.requests import Requests


class Rois(Requests):
    """ROIs of a canvas. A write takes effect once, however often it has to be sent."""

    def rois(self, canvas: Canvas | str, **filters: Any) -> Iterator[Roi]:
        """ROIs of a canvas; filters are ``label``, ``review_state``, ``frame_pts`` and so on."""
        params = {"canvas": id_of(canvas), "page_size": request_rules.ROIS_A_REQUEST, **filters}
        return self._all(Roi, "rois/", params)

    def roi(self, roi: Roi | str) -> Roi:
        """One ROI by its id."""
        return self._one(Roi, f"rois/{id_of(roi)}/")

    def create_roi(self, canvas: Canvas | str, outline: Any, **fields: Any) -> Roi:
        """Draw an ROI.

        Args:
            outline: see ``shapes.geojson_of``.
            fields: ``label`` (an id), ``name``, ``properties``, ``frame`` (``{"index": 12}``).
        """
        data = {
            "id": str(uuid.uuid4()),
            "canvas": id_of(canvas),
            "geometry": geojson_of(outline),
            **fields,
        }
        return parse(Roi, self._write("POST", "rois/", data))

    def create_rois(
        self, canvas: Canvas | str, outlines: Iterable[Any], **fields: Any
    ) -> list[Roi]:
        """Draw many ROIs, a thousand at a time; of each thousand all are made, or none."""
        new = [
            {"do": "create", "id": str(uuid.uuid4()), "geometry": geojson_of(one), **fields}
            for one in outlines
        ]
        created: list[Roi] = []
        for start in range(0, len(new), request_rules.ROIS_A_REQUEST):
            changes = new[start : start + request_rules.ROIS_A_REQUEST]
            data = self._write("POST", "rois/bulk/", {"canvas": id_of(canvas), "changes": changes})
            created += [parse(Roi, row) for row in data["rois"]]
        return created

    def change_roi(self, roi: Roi, **fields: Any) -> Roi:
        """Change ``outline``, ``label``, ``name``, ``properties`` and so on.

        Raises:
            ConflictError: somebody changed it since ``roi`` was read.
        """
        if "outline" in fields:
            fields["geometry"] = geojson_of(fields.pop("outline"))
        data = self._write("PATCH", f"rois/{roi.id}/", fields, request_rules.if_match(roi.version))
        return parse(Roi, data)

    def delete_roi(self, roi: Roi) -> None:
        """Move an ROI into the trash.

        Raises:
            ConflictError: somebody changed it since ``roi`` was read.
        """
        self._write("DELETE", f"rois/{roi.id}/", None, request_rules.if_match(roi.version))

    def thread(self, roi: Roi | str) -> Iterator[ThreadEntry]:
        """Steps of its review and comments on it, oldest first."""
        return self._all(ThreadEntry, f"rois/{id_of(roi)}/thread/", {})

    def comment(self, roi: Roi | str, text: str) -> ThreadEntry:
        """Comment on an ROI; returns the new entry of its thread."""
        answer = self.request("POST", f"rois/{id_of(roi)}/thread/", json={"text": text})
        return parse(ThreadEntry, answer.json())

    def import_rois(self, canvas: Canvas | str, path: str | Path, **options: Any) -> Any:
        """Import a file of GeoJSON, ASAP, COCO or CVAT; returns the report of the import.

        Args:
            options: ``dry_run=1``, ``create_labels=0``, ``labels`` (class names to ids or None).
        """
        if "labels" in options:
            options["labels"] = json_text.dumps(options["labels"])
        answer = self.request(
            "POST",
            f"canvases/{id_of(canvas)}/roi-file/",
            params=options,
            content=call(Path(path).read_bytes),
            headers={"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"},
        )
        return answer.json()

    def export_rois(
        self, canvas: Canvas | str, path: str | Path, *, format: str = "geojson"
    ) -> Path:
        """Write the ROIs of a canvas to a file: geojson, asap, coco, csv, mask and so on."""
        return self._download(f"canvases/{id_of(canvas)}/roi-file/", path, {"format": format})

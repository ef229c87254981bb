"""Downloads of the log: CSV or JSON lines, streamed, oldest first."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from portal.audit.chain import FIELDS, entry_represent
from portal.audit.models import AuditEntry
from portal.audit.selectors import CHUNK
from portal.core.http.downloads import attachment
from portal.labs.models import Lab

FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


def export_response(entries: QuerySet[AuditEntry], *, lab: Lab, kind: str) -> StreamingHttpResponse:
    """Entries as an attachment; ``kind`` is a key of ``FORMATS``."""
    rows = entries.order_by("id").iterator(chunk_size=CHUNK)
    lines = _csv(rows) if kind == "csv" else _jsonl(rows)
    return StreamingHttpResponse(
        lines,
        content_type=FORMATS[kind],
        headers={
            "Content-Disposition": attachment(f"audit-{lab.slug}", f".{kind}", fallback="audit"),
            "Cache-Control": "no-store",
        },
    )


def _jsonl(rows: Iterator[AuditEntry]) -> Iterator[str]:
    for entry in rows:
        yield json.dumps(entry_represent(entry)) + "\n"


def _csv(rows: Iterator[AuditEntry]) -> Iterator[str]:
    page = io.StringIO()
    writer = csv.DictWriter(page, FIELDS)
    writer.writeheader()
    for entry in rows:
        row = entry_represent(entry)
        writer.writerow(row | {"details": json.dumps(row["details"]) if row["details"] else ""})
        yield page.getvalue()
        page.seek(0)
        page.truncate()
    yield page.getvalue()

"""Log formatters that add the ids of request and job and remove secrets.

Removed are tokens, signed grants and links, and values of rows that PostgreSQL quotes in errors.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from portal.core.observe import ids

LEFT_OUT = "[left out]"
_SECRETS = (
    re.compile(r"(?i)\b(bearer|basic|token)[ =:]+[\w.~+/:-]{8,}=*"),
    re.compile(r"\btess_[\w-]+"),
    re.compile(r"(?i)\b(?:sessionid|csrftoken|password|secret|passwd)[\"']?[=:]\s*[^\s;,&]+"),
    re.compile(r"(?<=://)[^/@\s]+@"),  # user and password of an address
    re.compile(r"(?<=\?)[^\s\"']+"),  # the query of an address: people search for patients
)
_WORD = re.compile(r"[\w-]+(?:[.:=][\w-]+)*")
LONG = 32  # characters; secrets are longer, ordinary words shorter
# Ids, hashes and dotted module names are no secrets.
_HARMLESS = re.compile(r"[0-9a-f-]+|(?:[A-Za-z_]\w{0,40}[.:])+\w{0,40}|[a-z_]+|[_-]+")
_ROW_VALUES = re.compile(r"(?m)^(?:DETAIL|CONTEXT|HINT):.*$")


def scrub(text: str) -> str:
    """Remove secrets and values of rows from a text."""
    text = _ROW_VALUES.sub(LEFT_OUT, text)
    for pattern in _SECRETS:
        text = pattern.sub(LEFT_OUT, text)
    return _WORD.sub(_unless_harmless, text)


def _unless_harmless(match: re.Match[str]) -> str:
    is_fine = len(match[0]) < LONG or _HARMLESS.fullmatch(match[0])
    return match[0] if is_fine else LEFT_OUT


class _Scrubbed(logging.Formatter):
    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        return scrub(super().formatException(ei))  # type: ignore[arg-type]

    def _message(self, record: logging.LogRecord) -> str:
        return scrub(record.getMessage())


class LineFormatter(_Scrubbed):
    """Formatter for a terminal: time, level, logger, ids, message."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line, followed by its stack."""
        names = " ".join(
            f"{word}={name}"
            for word, name in (("request", ids.request_id()), ("job", ids.job_id()))
            if name
        )
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        between = f" [{names}]" if names else ""
        line = f"{time} {record.levelname} {record.name}{between}: {self._message(record)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(_Scrubbed):
    """Formatter for a log collector: one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record with its ``fields``, without empty fields."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._message(record),
            "request_id": ids.request_id(),
            "job_id": ids.job_id(),
            "pid": record.process,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps({key: value for key, value in line.items() if value != ""}, default=str)

"""Log lines with the ids of request and job, and without what must not be kept.

Lines name things by their ids. What libraries put into them all the same is left out here: tokens,
signed grants and links, and the values of rows that PostgreSQL quotes in its errors.
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
LONG = 32  # characters; what opens something has more, an ordinary word fewer
# An id or a hash names a thing and opens nothing; a dotted name is a module.
_HARMLESS = re.compile(r"[0-9a-f-]+|(?:[A-Za-z_]\w{0,40}[.:])+\w{0,40}|[a-z_]+|[_-]+")
_ROW_VALUES = re.compile(r"(?m)^(?:DETAIL|CONTEXT|HINT):.*$")


def scrub(text: str) -> str:
    """The text without secrets and without the values of rows."""
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
    """For a terminal: time, level, logger, ids, message."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the stack below it where there is one."""
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
    """For a collector: one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Empty fields are left out; ``fields`` of the record become fields of the line."""
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

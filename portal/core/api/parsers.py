"""JSON in, read so that what is wrong with it can be named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from portal.core.errors import TooLargeInputError
from portal.core.http.bodies import API_BODY_BYTES


class BoundedJsonParser(BaseParser):
    """``application/json``: bounded in size, and deep nesting is an error, not a crash."""

    media_type = "application/json"
    allows_nan = False

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The parsed body; of names that occur twice the last wins."""
        body = stream.read(API_BODY_BYTES + 1)
        if len(body) > API_BODY_BYTES:
            raise TooLargeInputError(
                f"The body is larger than {API_BODY_BYTES // 2**20} MiB. Send it in parts."
            )
        constant = None if self.allows_nan else _refuse_constant
        try:
            return json.loads(body.decode("utf-8-sig"), parse_constant=constant)
        except RecursionError:
            raise ParseError("JSON parse error - nested too deeply.") from None
        except ValueError as error:
            raise ParseError(f"JSON parse error - {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

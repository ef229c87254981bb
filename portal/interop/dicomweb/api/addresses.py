"""Addresses of DICOMweb: UIDs in paths stand for the ids of cases, canvases and their levels."""

from __future__ import annotations

import uuid

from rest_framework.request import Request

from ml.imaging.dicom.uids import uid_of, uuid_of
from portal.interop.http import base_of

ROOT = "/api/v1/dicomweb"


class UidConverter:
    """A UID of 2.25 and a UUID's number in a path; every other UID is not found."""

    regex = r"2\.25\.[0-9]{1,39}"

    def to_python(self, value: str) -> uuid.UUID:
        """The UUID."""
        uid = uuid_of(value)
        if uid is None:
            raise ValueError(value)
        return uid

    def to_url(self, value: uuid.UUID | str) -> str:
        """The UID."""
        return uid_of(uuid.UUID(str(value)))


def address_of(request: Request, study: str, series: str = "", instance: str = "") -> str:
    """URL from which a study, a series or an instance is retrieved."""
    parts = [base_of(request), ROOT, f"/studies/{study}"]
    parts += [f"/series/{series}"] if series else []
    parts += [f"/instances/{instance}"] if instance else []
    return "".join(parts)

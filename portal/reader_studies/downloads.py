"""Downloads of a study."""

from __future__ import annotations

from django.http import StreamingHttpResponse

from portal.annotations.models import Label
from portal.core.http.downloads import attachment
from portal.labs.models import User
from portal.reader_studies.models import Study
from portal.reader_studies.selectors.results import image_results
from portal.reader_studies.selectors.tables import agreement_csv


def agreement_download(study: Study) -> StreamingHttpResponse:
    """Agreement of a study as CSV, UTF-8 with a byte order mark for spreadsheets."""
    results = image_results(study)
    ids = {reader for result in results for reader in result.readers}
    people = {user.pk: str(user) for user in User.objects.filter(pk__in=ids)}
    labels = {str(label.pk): label.name for label in Label.objects.filter(lab_id=study.lab_id)}
    lines = agreement_csv(results, people=people, labels=labels)
    return StreamingHttpResponse(
        ("﻿" * (k == 0) + line for k, line in enumerate(lines)),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": attachment(
                f"{study.name}-agreement", ".csv", fallback="agreement"
            )
        },
    )

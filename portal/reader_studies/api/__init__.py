"""REST endpoints of assignments and reader studies."""

from __future__ import annotations

from typing import Any

from django.urls import path

from portal.reader_studies.api.assignments import (
    AssignmentApi,
    AssignmentReopenApi,
    AssignmentSubmitApi,
)
from portal.reader_studies.api.results import (
    StudyAgreementApi,
    StudyAgreementTableApi,
    StudyDecideApi,
    StudyFindingsApi,
)
from portal.reader_studies.api.studies import StudyApi, StudyUnblindApi

router_entries: list[tuple[str, Any, str]] = [
    ("studies", StudyApi, "study"),
    ("assignments", AssignmentApi, "assignment"),
]
urlpatterns = [
    path("studies/<uuid:id>/unblind/", StudyUnblindApi.as_view(), name="study-unblind"),
    path("studies/<uuid:id>/agreement/", StudyAgreementApi.as_view(), name="study-agreement"),
    path(
        "studies/<uuid:id>/agreement.csv",
        StudyAgreementTableApi.as_view(),
        name="study-agreement-table",
    ),
    path("studies/<uuid:id>/findings/", StudyFindingsApi.as_view(), name="study-findings"),
    path("studies/<uuid:id>/decisions/", StudyDecideApi.as_view(), name="study-decide"),
    path("assignments/<uuid:id>/submit/", AssignmentSubmitApi.as_view(), name="assignment-submit"),
    path("assignments/<uuid:id>/reopen/", AssignmentReopenApi.as_view(), name="assignment-reopen"),
]

"""URLs of pages: my work, assigned work, studies."""

from __future__ import annotations

from django.urls import path

from portal.reader_studies.views import studies, work

app_name = "reader_studies"
urlpatterns = [
    path("work/", work.mine, name="work"),
    path("work/next/", work.next_one, name="work_next"),
    path("work/lab/", work.assigned, name="assigned"),
    path("work/assign/", work.assign, name="assign"),
    path("assignments/<uuid:assignment_id>/submit/", work.submit, name="submit"),
    path("assignments/<uuid:assignment_id>/reopen/", work.reopen, name="reopen"),
    path("assignments/<uuid:assignment_id>/remove/", work.remove, name="remove"),
    path("studies/", studies.index, name="studies"),
    path("studies/<uuid:study_id>/", studies.study, name="study"),
    path("studies/<uuid:study_id>/assign/", studies.assign, name="study_assign"),
    path("studies/<uuid:study_id>/unblind/", studies.unblind, name="study_unblind"),
    path("studies/<uuid:study_id>/findings/", studies.findings, name="study_findings"),
    path("studies/<uuid:study_id>/decide/", studies.decide, name="study_decide"),
    path("studies/<uuid:study_id>/agreement.csv", studies.table, name="study_table"),
]

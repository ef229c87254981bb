"""Pages of searches."""

from __future__ import annotations

from django.urls import path

from portal.search.views import explanations, queries, reports, similar_cases

app_name = "search"
urlpatterns = [
    path("rois/<uuid:roi_id>/similar/", similar_cases.similar, name="similar"),
    path(
        "rois/<uuid:roi_id>/similar/explanation/<uuid:other_id>/",
        explanations.roi_explanation,
        name="explanation",
    ),
    path("rois/<uuid:roi_id>/similar/report/", reports.report_roi, name="report_roi"),
    path("rois/<uuid:roi_id>/judge/", similar_cases.judge, name="judge"),
    path("rois/<uuid:roi_id>/embed/", similar_cases.embed, name="embed"),
    path("rois/<uuid:roi_id>/thumbnail.jpg", similar_cases.thumbnail, name="thumbnail"),
    path("queries/", queries.queries, name="queries"),
    path("queries/ask/", queries.ask, name="query_ask"),
    path("queries/picture/", queries.picture, name="query_new_picture"),
    path("queries/<uuid:query_id>/", queries.query, name="query"),
    path(
        "queries/<uuid:query_id>/explanation/<uuid:other_id>/",
        explanations.query_explanation,
        name="query_explanation",
    ),
    path("queries/<uuid:query_id>/report/", reports.report_query, name="report_query"),
    path("queries/<uuid:query_id>/embed/", queries.query_embed, name="query_embed"),
    path("queries/<uuid:query_id>/mark/", queries.query_mark, name="query_mark"),
    path("queries/<uuid:query_id>/remove/", queries.query_remove, name="query_remove"),
    path("queries/<uuid:query_id>/picture.jpg", queries.query_thumbnail, name="query_picture"),
    path("reports/", reports.reports, name="reports"),
    path("reports/<uuid:report_id>/", reports.report, name="report"),
    path("reports/<uuid:report_id>/again/", reports.report_again, name="report_again"),
    path("reports/<uuid:report_id>/again/keep/", reports.report_renew, name="report_renew"),
    path(
        "reports/<uuid:report_id>/interpretation/",
        reports.report_interpret,
        name="report_interpret",
    ),
    path("reports/<uuid:report_id>/delete/", reports.report_delete, name="report_delete"),
    path("reports/<uuid:report_id>/report.pdf", reports.report_file, name="report_file"),
    path(
        "reports/<uuid:report_id>/pictures/<int:rank>.jpg",
        reports.report_picture,
        name="report_picture",
    ),
]

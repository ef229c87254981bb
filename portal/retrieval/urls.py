"""Pages of retrieval."""

from __future__ import annotations

from django.urls import path

from portal.retrieval import views

app_name = "retrieval"
urlpatterns = [
    path("rois/<uuid:roi_id>/similar/", views.similar, name="similar"),
    path("rois/<uuid:roi_id>/similar/why/<uuid:other_id>/", views.why, name="why"),
    path("rois/<uuid:roi_id>/similar/report/", views.report_roi, name="report_roi"),
    path("rois/<uuid:roi_id>/judge/", views.judge, name="judge"),
    path("rois/<uuid:roi_id>/embed/", views.embed, name="embed"),
    path("rois/<uuid:roi_id>/thumbnail.jpg", views.thumbnail, name="thumbnail"),
    path("queries/", views.queries, name="queries"),
    path("queries/ask/", views.ask, name="query_ask"),
    path("queries/picture/", views.picture, name="query_new_picture"),
    path("queries/<uuid:query_id>/", views.query, name="query"),
    path("queries/<uuid:query_id>/why/<uuid:other_id>/", views.query_why, name="query_why"),
    path("queries/<uuid:query_id>/report/", views.report_query, name="report_query"),
    path("queries/<uuid:query_id>/embed/", views.query_embed, name="query_embed"),
    path("queries/<uuid:query_id>/mark/", views.query_mark, name="query_mark"),
    path("queries/<uuid:query_id>/remove/", views.query_remove, name="query_remove"),
    path("queries/<uuid:query_id>/picture.jpg", views.query_thumbnail, name="query_picture"),
    path("browse/", views.browse, name="browse"),
    path("browse/near-duplicates/", views.browse_duplicates, name="browse_duplicates"),
    path("browse/unlike/", views.browse_unlike, name="browse_unlike"),
    path("browse/unannotated/", views.browse_unannotated, name="browse_unannotated"),
    path("browse/draw/", views.browse_draw, name="browse_draw"),
    path("rois/<uuid:roi_id>/label/", views.browse_label, name="browse_label"),
    path("canvases/<uuid:canvas_id>/look-through/", views.look_through, name="look_through"),
    path("lab/learning/", views.learnings, name="learnings"),
    path("lab/learning/<uuid:learning_id>/", views.learning, name="learning"),
    path(
        "lab/learning/<uuid:learning_id>/promote/", views.learning_promote, name="learning_promote"
    ),
    path(
        "lab/learning/<uuid:learning_id>/roll-back/",
        views.learning_roll_back,
        name="learning_roll_back",
    ),
    path("reports/", views.reports, name="reports"),
    path("reports/<uuid:report_id>/", views.report, name="report"),
    path("reports/<uuid:report_id>/again/", views.report_again, name="report_again"),
    path("reports/<uuid:report_id>/again/keep/", views.report_renew, name="report_renew"),
    path("reports/<uuid:report_id>/delete/", views.report_delete, name="report_delete"),
    path("reports/<uuid:report_id>/report.pdf", views.report_file, name="report_file"),
    path(
        "reports/<uuid:report_id>/pictures/<int:rank>.jpg",
        views.report_picture,
        name="report_picture",
    ),
]

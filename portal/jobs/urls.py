"""URLs of the pages of jobs."""

from __future__ import annotations

from django.urls import path

from portal.jobs import views

app_name = "jobs"
urlpatterns = [
    path("jobs/", views.job_list, name="list"),
    path("jobs/cancel/", views.jobs_cancel, name="cancel_many"),
    path("jobs/<uuid:job_id>/", views.job_detail, name="detail"),
    path("jobs/<uuid:job_id>/cancel/", views.job_cancel, name="cancel"),
    path("jobs/<uuid:job_id>/retry/", views.job_retry, name="retry"),
]

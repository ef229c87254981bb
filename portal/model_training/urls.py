"""Pages about models trained on a lab's archive."""

from __future__ import annotations

from django.urls import path

from portal.model_training import views

app_name = "model_training"
urlpatterns = [
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
]

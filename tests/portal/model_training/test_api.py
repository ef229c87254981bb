"""Learning over REST and on its pages: who may, what is answered, what another lab sees."""

from __future__ import annotations

import pytest
from django.utils import timezone

from portal.archive.models import Modality
from portal.embeddings.models import Embedding
from portal.jobs.models import WorkerHeartbeat
from portal.model_training.models import Learning
from tests.clients import client_of
from tests.portal.model_training.archives import filled, learned, promoted

URL = "/api/v1/learnings/"


@pytest.fixture
def learning(world, manager):
    filled(world)
    return learned(world, manager)


def test_a_metric_is_learned_activated_and_rolled_back(world, manager, api_as):
    filled(world)
    api = api_as(manager)
    response = api.post(URL, {}, format="json")
    assert response.status_code == 202
    assert (response.json()["is_better"], response.json()["use"], response.json()["result"]) == (
        None,
        "no",
        None,
    )
    world.run_jobs()
    url = f"{URL}{response.json()['id']}/"
    body = api.get(url).json()
    assert body["is_better"] is True
    assert body["encoder"]["lab"] == str(world.lab.pk)
    assert body["encoder"]["base"] == body["base"]["id"]
    assert {row["name"] for row in body["result"]["measures"]} >= {"map_at_10"}
    promoted = api.post(f"{url}promote/")
    assert promoted.status_code == 202 and promoted.json()["id"]
    assert api.get(url).json()["use"] == "preparing"
    world.run_jobs()
    assert api.get(url).json()["use"] == "yes"
    roi = Embedding.objects.filter(encoder_id=body["encoder"]["id"]).first().roi_id
    answer = api.post("/api/v1/search/", {"roi": str(roi)}, format="json").json()
    assert answer["encoder"]["id"] == body["encoder"]["id"]
    back = api.post(f"{url}roll-back/")
    assert (back.status_code, back.json()["use"]) == (200, "no")
    answer = api.post("/api/v1/search/", {"roi": str(roi)}, format="json").json()
    assert answer["encoder"]["id"] == body["base"]["id"]
    assert api.post(f"{url}roll-back/").status_code == 409


def test_promoting_a_worse_metric_is_a_conflict(world, manager, api_as):
    filled(world, learnable=False)
    learning = learned(world, manager)
    refused = api_as(manager).post(f"{URL}{learning.pk}/promote/")
    assert refused.status_code == 409
    assert refused.json()["code"] == "not-better"


def test_too_little_data_is_a_conflict_with_a_reason(world, manager, api_as):
    filled(world, patients=3)
    refused = api_as(manager).post(URL, {"kind": "histology"}, format="json")
    assert refused.status_code == 409
    assert refused.json()["code"] == "too-little-data"
    assert "Found: 3 patients" in refused.json()["detail"]


def test_members_see_the_encoder_but_not_its_learning(learning, annotator, api_as):
    api = api_as(annotator)
    assert api.get(f"{URL}{learning.pk}/").status_code == 403
    assert api.get(URL).json()["results"] == []
    assert api.get(f"/api/v1/encoders/{learning.encoder_id}/").status_code == 200


def test_the_pages_show_and_promote_a_metric(world, manager):
    page = client_of(manager)
    filled(world)
    url = f"/lab/learning/?lab={world.lab.slug}"
    assert "Adjust the search model" in page.get(url).content.decode()
    made = page.post(url, {"kind": Modality.HISTOLOGY})
    assert made.status_code == 302
    assert "Waiting for a worker" in page.get(made["Location"]).content.decode()
    assert "under way" in page.get(url).content.decode()
    world.run_jobs()
    shown = page.get(made["Location"]).content.decode()
    for words in ("Better", "nearest ten", "decides", "large", "small", "Examples", "Put in use"):
        assert words in shown
    page.post(f"{made['Location']}promote/")
    assert "Roll back" in page.get(made["Location"]).content.decode()
    world.run_jobs()
    assert "Searches of this lab use it" in page.get(made["Location"]).content.decode()
    assert "learned here" in page.get(url).content.decode()
    page.post(f"{made['Location']}roll-back/")
    assert "Put in use" in page.get(made["Location"]).content.decode()


def test_a_second_metric_is_compared_with_the_one_in_use(world, manager, api_as):
    page, api = client_of(manager), api_as(manager)
    _, first = promoted(world, manager)
    world.run_jobs()
    encoder_id = str(first.encoder)
    second = learned(world, manager)
    where, item = f"/lab/learning/{second.pk}/", f"{URL}{second.pk}/"
    assert api.get(item).json()["compared_with"]["id"] == str(first.encoder_id)
    shown = page.get(where).content.decode()
    assert "<strong>Not better</strong>" in shown and encoder_id in shown.split("Compared with")[1]
    Learning.objects.filter(pk=second.pk).update(is_better=True)
    assert "Put in use" in page.get(where).content.decode()
    page.post(f"{where}promote/")
    assert "This is not put in use." in page.get(where).content.decode()
    world.run_jobs()
    assert "use the previous search model again?" in page.get(where).content.decode()
    world.embedded(world.canvas(world.case("new", "patient new")), 100, 100, 41)
    back = page.post(f"{where}roll-back/", follow=True).content.decode()
    assert "They will use the previous one again once the regions drawn" in back
    assert str(first.base) in back.split("In use now")[1]
    assert "It was compared with" not in back and "so it cannot be put in use" in back
    refused = api.post(f"{item}promote/")
    assert (refused.status_code, refused.json()["code"]) == (409, "searches-changed")
    world.run_jobs()
    assert "Put in use" in page.get(where).content.decode()


def test_the_page_submits_an_encoder_with_its_limits(world, manager):
    page = client_of(manager)
    filled(world)
    url = f"/lab/learning/?lab={world.lab.slug}"
    assert "Retrain the search model" in page.get(url).content.decode()
    data = {"kind": Modality.HISTOLOGY, "method": "encoder"}
    for more, words in (
        ({}, "as numbers"),
        ({"steps": "x", "hours": "1"}, "as numbers"),
        ({"steps": "5", "hours": "1"}, "expected 20 to 20,000, got 5"),
        ({"steps": "50", "hours": "nan"}, "expected more than 0"),
    ):
        refused = page.post(url, data | more, follow=True).content.decode()
        assert words in refused
    assert not Learning.objects.exists()
    made = page.post(url, data | {"steps": "50", "hours": "1.5"})
    shown = page.get(made["Location"]).content.decode()
    assert "Retrained search model" in shown and "Waiting for a worker" in shown
    learning = Learning.objects.get()
    assert (learning.method, learning.steps, learning.hours) == ("encoder", 50, 1.5)


def test_the_learning_page_shows_the_devices_of_workers(world, manager):
    page = client_of(manager)
    filled(world)
    url = f"/lab/learning/?lab={world.lab.slug}"
    assert "no worker answers" in page.get(url).content.decode()
    facts = {"queues": "default,gpu", "device": "Some GPU (cuda:0, 40 GiB)"}
    WorkerHeartbeat.objects.create(name="w", last_seen_at=timezone.now(), **facts)
    shown = page.get(url).content.decode()
    assert "Some GPU (cuda:0, 40 GiB)" in shown and "no worker answers" not in shown


def test_the_page_of_a_worse_metric_offers_no_activation(world, manager):
    page = client_of(manager)
    filled(world, learnable=False)
    learning = learned(world, manager)
    shown = page.get(f"/lab/learning/{learning.pk}/").content.decode()
    assert "Not better" in shown and "Put in use" not in shown
    answer = page.post(f"/lab/learning/{learning.pk}/promote/", follow=True)
    assert "not better" in answer.content.decode()


def test_the_query_count_of_the_learning_page_is_constant(
    learning, manager, django_assert_max_num_queries
):
    page = client_of(manager)
    page.get(f"/lab/learning/{learning.pk}/")
    with django_assert_max_num_queries(14):
        page.get(f"/lab/learning/{learning.pk}/")


def test_the_page_shows_missing_training_data(world, manager):
    filled(world, patients=3)
    page = client_of(manager)
    shown = page.get("/lab/learning/").content.decode()
    assert "<summary>There is too little to learn from.</summary>" in shown
    assert "<p>Learning from labels needs two labels" in shown
    assert "14 patients or more in all. Found: 3 patients" in shown
    assert "<p>Learning from judgements alone needs" in shown

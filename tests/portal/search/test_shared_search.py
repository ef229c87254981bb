"""A region that another lab shares is searched with among one's own, and nothing crosses."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.annotations.models import Label, LabelSet
from portal.annotations.services.rois import roi_delete
from portal.archive.models.shares import today
from portal.archive.services.sharing import share_accept, share_end, share_offer
from portal.audit.models import AuditEntry
from portal.embeddings.indexes import Scope
from portal.embeddings.selectors.encoders import encoder_default
from portal.embeddings.services.indexes import index_build_submit
from portal.jobs.models import Job
from portal.labs.models import Lab, Membership, Role, User
from tests.portal.embedded_rois import World


@pytest.fixture
def ours(other_lab, stranger, storage, encoder):
    """The world of the lab that it is shared with."""
    return World(other_lab, stranger, storage)


@pytest.fixture
def shared(world, ours, manager, stranger):
    """North shares the region of one case; both labs have others like it, of equal pseudonyms."""
    query = world.embedded(world.canvas(world.case("N1", "p1")), 100, 100, name="asked")
    world.embedded(world.canvas(world.case("N2", "p2")), 101, 100, name="theirs")
    ours.embedded(ours.canvas(ours.case("S1", "p1", organ="colon")), 130, 100, name="ours-1")
    ours.embedded(ours.canvas(ours.case("S2", "p9", organ="liver")), 160, 100, name="ours-2")
    until = today() + timedelta(days=9)
    share = share_offer(case=query.canvas.case, with_lab="south", until=until, user=manager)
    share_accept(share=share, user=stranger)
    return query, share


def search(api, roi, **filters):
    return api.post("/api/v1/search/", {"roi": str(roi.pk), "filters": filters}, format="json")


def names(answer):
    assert answer.status_code == 200, answer.content
    return [hit["roi"]["name"] for hit in answer.json()["results"]]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_only_regions_of_the_readers_lab_are_found(
    api_as, stranger, annotator, world, shared, is_indexed, lab, other_lab
):
    query, _ = shared
    for lab_id in (lab.pk, other_lab.pk) if is_indexed else ():
        index_build_submit(scope=Scope(encoder_default(), lab_id))
    world.run_jobs()
    # An equal pseudonym is another patient: it is neither left out nor mentioned.
    assert names(search(api_as(stranger), query)) == ["ours-1", "ours-2"]
    assert names(api_as(stranger).get(f"/api/v1/rois/{query.pk}/similar/")) == ["ours-1", "ours-2"]
    assert names(search(api_as(stranger), query, organ="liver")) == ["ours-2"]
    assert names(search(api_as(annotator), query)) == ["theirs"]


def test_access_ends_with_the_share(api_as, stranger, shared):
    query, share = shared
    share_end(share=share, user=stranger)
    assert search(api_as(stranger), query).status_code == 404


def test_an_unshared_region_starts_no_search(api_as, stranger, world, shared):
    other = world.embedded(world.canvas(world.case("N3", "p3")), 100, 100)
    assert search(api_as(stranger), other).status_code == 404


def test_a_deleted_region_starts_no_search(api_as, stranger, annotator, shared):
    query, _ = shared
    roi_delete(roi=query, user=annotator, expected_version=1)
    assert search(api_as(stranger), query).status_code == 404


def test_a_third_lab_gets_404(api_as, shared, db):
    lab = Lab.objects.create(name="West", slug="west")
    user = User.objects.create_user("w@west.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    assert search(api_as(user), shared[0]).status_code == 404


def test_only_labels_of_the_readers_lab_filter(api_as, stranger, lab, ours, shared):
    query, _ = shared
    label_set = LabelSet.objects.create(lab=lab, name="Findings")
    theirs = Label.objects.create(lab=lab, label_set=label_set, name="Gland")
    mine = ours.labels("Polyp")[0]
    assert search(api_as(stranger), query, label=str(theirs.pk)).status_code == 404
    assert names(search(api_as(stranger), query, label=str(mine.pk))) == []


def test_an_unembedded_shared_roi_is_a_conflict(api_as, client, stranger, world, shared):
    query, _ = shared
    fresh = world.roi(query.canvas, 300, 300)
    jobs = Job.objects.count()
    answer = search(api_as(stranger), fresh)
    assert (answer.status_code, answer.json()["code"]) == (409, "roi-not-embedded")
    client.force_login(stranger)
    text = client.get(f"/rois/{fresh.pk}/similar/").content.decode()
    assert "North has not prepared this region" in text
    assert "Try again</button>" not in text and "See the job" not in text
    assert Job.objects.count() == jobs
    assert client.post(f"/rois/{fresh.pk}/embed/").status_code == 404


def test_the_page_names_the_lab_of_the_regions(client, stranger, shared):
    client.force_login(stranger)
    text = client.get(f"/rois/{shared[0].pk}/similar/").content.decode()
    assert "The regions of South" in text and "which North shares with you" in text
    assert "ours-1" in text and "theirs" not in text
    assert "liver" in text and "Include the same patient" not in text


def test_both_labs_see_the_search_in_their_audit_log(api_as, stranger, lab, other_lab, shared):
    search(api_as(stranger), shared[0])
    noted = AuditEntry.objects.filter(action="search.made", object_id=shared[0].pk)
    assert {entry.lab_id for entry in noted} == {lab.pk, other_lab.pk}
    assert {entry.details["with"] for entry in noted} == {other_lab.slug}


def test_a_search_of_a_shared_roi_takes_few_queries(
    api_as, stranger, shared, django_assert_max_num_queries
):
    client = api_as(stranger)
    search(client, shared[0])
    with django_assert_max_num_queries(26):
        search(client, shared[0])

"""A portal switches to a foundation model of published size, and back.

CONCH's image tower (86 million parameters, 448 px) with random weights: the published ones are
gated. All else is as for a lab: a file that ``python -m ml encoder make`` wrote, ROIs that jobs
embed, comparison, approval and return.
"""

from __future__ import annotations

from io import StringIO

import pytest
import torch
from django.core.management import call_command
from PIL import Image

from ml.cli import main
from ml.roi.encoders.foundation import foundation_network
from ml.roi.encoders.recipes import CONCH
from portal.embeddings.models import Embedding
from portal.embeddings.selectors.encoders import encoder_default, encoder_next
from portal.search.selectors.similar_cases import SimilarQuery, similar_search
from tests.ml.roi.conftest import draw_tissue
from tests.portal.embedded_rois import SIDE, World

pytestmark = [pytest.mark.django_db, pytest.mark.endurance, pytest.mark.timeout(1200)]

MPP = 2.0  # of the stills: a patch of 512 px at 0.5 um is 128 px of them


@pytest.fixture
def world(lab, annotator, storage):
    return World(lab, annotator, storage)


@pytest.fixture
def encoder_file(tmp_path, monkeypatch):
    """Encoder file of CONCH with random weights."""
    folder = tmp_path / "models" / "conch"
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    state = {
        CONCH.prefix + name: tensor
        for name, tensor in foundation_network(CONCH).state_dict().items()
    }
    assert sum(tensor.numel() for tensor in state.values()) > 80e6
    torch.save(state, folder / "pytorch_model.bin")
    monkeypatch.setenv("TESSERA_MODELS", str(folder.parent))
    out = tmp_path / "conch.safetensors"
    arguments = ["--features", "hub:conch", "--out", str(out), "--name", "conch"]
    assert main(["encoder", "make", *arguments, "--version", "1"]) == 0
    return out


def tissue_canvas(world, number):
    """Canvas of a still of the lab's patient of this number."""
    canvas = world.canvas(world.case(f"A{number}", patient=f"P{number}"))
    Image.fromarray(draw_tissue(SIDE, SIDE, seed=number)).save(world.storage / canvas.pixels_path)
    canvas.mpp_x = canvas.mpp_y = MPP
    canvas.save()
    return canvas


def command(action):
    out = StringIO()
    call_command("encoder", action, stdout=out)
    return out.getvalue()


def test_a_portal_switches_to_a_foundation_model_and_back(world, encoder_file, settings):
    settings.TESSERA_ENCODER_APPROVAL = True
    (label,) = world.labels("Gland")
    rois = [
        world.embedded(tissue_canvas(world, number), side=150, label=label) for number in range(3)
    ]
    shipped = encoder_default()
    assert shipped.name == "roi-default"

    settings.TESSERA_ENCODERS = settings.TESSERA_ENCODERS | {"histology": str(encoder_file)}
    drawn = world.roi(tissue_canvas(world, 3), side=150, label=label)
    world.run_jobs()
    conch = encoder_next("histology")
    assert (conch.name, conch.dim) == ("conch", CONCH.dim)
    assert encoder_default() == shipped
    embedded = Embedding.objects.filter(encoder=conch).values_list("roi", flat=True)
    assert set(embedded) == {roi.pk for roi in [*rois, drawn]}
    report = command("compare")
    assert "roi-default" in report and "conch 1 (next; 0 jobs are left)" in report
    assert "labelled ROIs of" in report

    assert "conch 1 is the default of histology" in command("approve")
    hits = similar_search(world.user, SimilarQuery(roi=drawn, encoder=conch)).hits
    assert {hit.roi for hit in hits} == set(rois)

    settings.TESSERA_ENCODERS = settings.TESSERA_ENCODERS | {"histology": "default"}
    before = Embedding.objects.filter(encoder=shipped).count()
    world.embedded(tissue_canvas(world, 4), side=150)
    assert encoder_next("histology") == shipped
    assert Embedding.objects.filter(encoder=shipped).count() == before + 2  # the newer ROIs only
    command("approve")
    assert encoder_default() == shipped
    assert Embedding.objects.filter(encoder=conch).count() == len(rois) + 1

"""``manage.py encoder``: the comparison in one line a lab, the word, the refusal."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from portal.embeddings.selectors.encoders import encoder_default
from portal.embeddings.services.encoders import EncoderIdentity, encoder_register


def output_of(*arguments):
    out = StringIO()
    call_command("encoder", *arguments, stdout=out)
    return out.getvalue()


def test_a_next_encoder_is_compared_then_approved(world, encoder, settings):
    settings.TESSERA_ENCODER_APPROVAL = True
    (label,) = world.labels("Gland")
    for i in range(4):
        world.embedded(world.canvas(world.case(f"A{i}", patient=f"P{i}")), 10 * i, label=label)
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    encoder_register(facts=facts, is_default=True)
    assert "box 1 (default) and box 2 (next; 1 jobs are left)" in output_of("compare")
    world.run_jobs()
    report = output_of("compare")
    assert f"{world.lab.name}: 4 labelled ROIs of 4 patients" in report
    assert "gain +0.000 [+0.000, +0.000]; 100% of the nearest are the same" in report
    assert "box 2 is the default of histology" in output_of("approve")
    assert encoder_default().version == "2"


def test_every_action_fails_without_a_next_encoder(world):
    for action in ("compare", "approve", "reject"):
        with pytest.raises(CommandError, match="waiting"):
            output_of(action, "--kind", "endoscopy")


def test_a_lab_without_labels_gets_a_message(world, encoder, settings):
    settings.TESSERA_ENCODER_APPROVAL = True
    world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    encoder_register(facts=facts, is_default=True)
    assert "nothing to compare by" in output_of("compare")
    assert "box 2 is no longer waiting" in output_of("reject")

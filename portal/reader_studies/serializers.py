"""Serializers of assignments and studies."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from shapely.geometry import mapping

from ml.types import JsonObject
from portal.reader_studies.agreement import Finding, PairAgreement
from portal.reader_studies.models import (
    DEFAULT_MIN_IOU,
    NOTE_MAX,
    Assignment,
    BlindUntil,
    Choice,
    Decision,
    Study,
)
from portal.reader_studies.selectors.results import ImageResult
from portal.reader_studies.services.assignments import MAX_ASSIGNMENTS


class StudySerializer(serializers.ModelSerializer[Study]):
    """A study, with the progress of its readers."""

    reading_count = serializers.IntegerField(read_only=True)
    submitted_count = serializers.IntegerField(read_only=True)
    image_count = serializers.IntegerField(read_only=True)
    blind_count = serializers.IntegerField(
        read_only=True, help_text="Number of readings whose regions nobody else sees yet"
    )
    labels = serializers.PrimaryKeyRelatedField[Any](many=True, read_only=True)
    created_by: serializers.StringRelatedField[Any] = serializers.StringRelatedField(
        read_only=True, allow_null=True
    )
    unblinded_by: serializers.StringRelatedField[Any] = serializers.StringRelatedField(
        read_only=True, allow_null=True
    )

    class Meta:
        model = Study
        fields = (
            *("id", "lab", "name", "note", "labels", "min_iou", "blind_until", "created_at"),
            *("created_by", "unblinded_at", "unblinded_by", "image_count", "reading_count"),
            *("submitted_count", "blind_count"),
        )
        read_only_fields = fields


class StudyCreateSerializer(serializers.Serializer[Any]):
    """Fields of a new study."""

    lab = serializers.UUIDField(required=False, help_text="Needed if you manage several labs")
    name = serializers.CharField(max_length=120)
    note = serializers.CharField(required=False, allow_blank=True, max_length=NOTE_MAX)
    labels = serializers.ListField(
        child=serializers.UUIDField(), required=False, help_text="Labels to compare; empty for all"
    )
    min_iou = serializers.FloatField(
        default=DEFAULT_MIN_IOU, help_text="Outlines that overlap less count as different findings"
    )
    blind_until = serializers.ChoiceField(BlindUntil.choices, default=BlindUntil.IMAGE)


class AssignmentSerializer(serializers.ModelSerializer[Assignment]):
    """An image assigned to a user."""

    person_name = serializers.CharField(source="person", read_only=True)
    canvas_name = serializers.CharField(source="canvas.name", read_only=True)
    accession = serializers.CharField(source="canvas.case.accession", read_only=True)
    study_name = serializers.CharField(
        source="study.name", read_only=True, default=None, allow_null=True
    )
    is_late = serializers.BooleanField(read_only=True)
    region_count = serializers.IntegerField(
        read_only=True,
        help_text="What the person has drawn there since then, as far as you may see it",
    )

    class Meta:
        model = Assignment
        fields = (
            *("id", "lab", "study", "study_name", "canvas", "canvas_name", "accession", "person"),
            *("person_name", "due_on", "note", "is_blind", "is_late", "region_count"),
            *("submitted_at", "created_at"),
        )
        read_only_fields = fields


class AssignmentQuerySerializer(serializers.Serializer[Any]):
    """Filters of assignments."""

    person = serializers.UUIDField(required=False)
    lab = serializers.UUIDField(required=False)
    study = serializers.UUIDField(required=False)
    canvas = serializers.UUIDField(required=False)
    done = serializers.BooleanField(required=False, allow_null=True, default=None)


class AssignSerializer(serializers.Serializer[Any]):
    """Images and users; each image is assigned to each user."""

    canvases = serializers.ListField(
        child=serializers.UUIDField(), required=False, default=list, max_length=MAX_ASSIGNMENTS
    )
    cases = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        default=list,
        max_length=MAX_ASSIGNMENTS,
        help_text="Every image that the case has now",
    )
    people = serializers.ListField(child=serializers.UUIDField(), max_length=200)
    study = serializers.UUIDField(
        required=False, allow_null=True, help_text="The study to read for"
    )
    due_on = serializers.DateField(required=False, allow_null=True)
    note = serializers.CharField(required=False, allow_blank=True, max_length=NOTE_MAX)


class AssignmentChangeSerializer(serializers.Serializer[Any]):
    """New due date and note; omitted fields stay."""

    due_on = serializers.DateField(required=False, allow_null=True)
    note = serializers.CharField(required=False, allow_blank=True, max_length=NOTE_MAX)


class AssignedSerializer(serializers.Serializer[Any]):
    """Number of assignments made."""

    made = serializers.IntegerField()
    known = serializers.IntegerField(help_text="Had it already")


class LabelAgreementSerializer(serializers.Serializer[Any]):
    """Two readers' agreement on a label."""

    label = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]
    regions_a = serializers.IntegerField()
    regions_b = serializers.IntegerField()
    matched = serializers.IntegerField()
    iou = serializers.FloatField(allow_null=True, help_text="Mean of matched regions")
    f1 = serializers.FloatField(allow_null=True, help_text="Of regions")
    dice = serializers.FloatField(allow_null=True, help_text="Of areas")
    kappa = serializers.FloatField(allow_null=True, help_text="Cohen's, of areas")


class PairAgreementSerializer(serializers.Serializer[Any]):
    """Two readers' agreement."""

    reader_a = serializers.UUIDField()
    reader_b = serializers.UUIDField()
    kappa_of_labels = serializers.FloatField(
        allow_null=True, help_text="Cohen's, of matched regions whatever their label"
    )
    labels = LabelAgreementSerializer(many=True)


class ImageAgreementSerializer(serializers.Serializer[Any]):
    canvas = serializers.UUIDField()
    canvas_name = serializers.CharField()
    left_out = serializers.IntegerField(help_text="Points and lines: they have no area")
    pairs = PairAgreementSerializer(many=True)


class StudyAgreementSerializer(serializers.Serializer[Any]):
    """Agreement over all submitted images, and on each."""

    pairs = PairAgreementSerializer(many=True)
    images = ImageAgreementSerializer(many=True)


class FoundRegionSerializer(serializers.Serializer[Any]):
    """A reader's region of a finding, as submitted."""

    reader = serializers.UUIDField()
    roi = serializers.UUIDField()
    label = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]
    frame = serializers.IntegerField(allow_null=True)
    geometry = serializers.JSONField()


class FindingSerializer(serializers.Serializer[Any]):
    """A finding on the image, with the regions of its readers."""

    id = serializers.UUIDField()
    agreement = serializers.ChoiceField(["agreed", "label", "missing"])
    iou = serializers.FloatField(allow_null=True, help_text="The lowest of all pairs")
    regions = FoundRegionSerializer(many=True)
    choice = serializers.ChoiceField(Choice.choices, allow_null=True)
    consensus = serializers.UUIDField(allow_null=True, help_text="The region that was decided on")


class FindingQuerySerializer(serializers.Serializer[Any]):
    """Query parameters: the image."""

    canvas = serializers.UUIDField()


class DecideSerializer(serializers.Serializer[Any]):
    """Decision on a finding."""

    canvas = serializers.UUIDField()
    findings = serializers.ListField(child=serializers.UUIDField(), min_length=1, max_length=500)
    choice = serializers.ChoiceField([*Choice.values, "undo"])
    reader = serializers.UUIDField(required=False, allow_null=True)
    label = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    roi = serializers.UUIDField(required=False, allow_null=True)


def pairs_represent(pairs: Mapping[tuple[uuid.UUID, uuid.UUID], PairAgreement]) -> list[Any]:
    """Pairs of readers with their figures."""
    return [
        {
            "reader_a": a,
            "reader_b": b,
            "kappa_of_labels": agreement.kappa_of_labels,
            "labels": [
                {
                    "label": label or None,
                    "regions_a": tally.n_a,
                    "regions_b": tally.n_b,
                    "matched": tally.matched,
                    "iou": tally.iou,
                    "f1": tally.f1,
                    "dice": tally.dice,
                    "kappa": tally.kappa,
                }
                for label, tally in agreement.labels.items()
            ],
        }
        for (a, b), agreement in pairs.items()
    ]


def finding_represent(
    finding: Finding, result: ImageResult, decision: Decision | None
) -> JsonObject:
    """A finding with each reader's outline and the decision."""
    return {
        "id": finding.id,
        "agreement": finding.state,
        "iou": finding.iou,
        "regions": [
            {
                "reader": result.readers[k],
                "roi": region.roi,
                "label": region.label or None,
                "frame": region.frame,
                "geometry": mapping(region.outline),
            }
            for k, region in finding.regions
        ],
        "choice": decision.choice if decision else None,
        "consensus": decision.roi_id if decision else None,
    }

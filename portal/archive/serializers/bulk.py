"""Selections of many cases, and results of their changes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.archive.services.bulk import MAX_CASES, CaseDetails
from portal.archive.services.cases import MAX_TAG_LENGTH, MAX_TAGS


class CaseSelectionSerializer(serializers.Serializer[Any]):
    """Cases by id, or all that match a filter of the list of cases."""

    cases = serializers.ListField(
        child=serializers.UUIDField(),
        max_length=MAX_CASES,
        required=False,
        help_text="Ids of the cases; this or `filter`",
    )
    filter = serializers.DictField(
        child=serializers.CharField(max_length=200, allow_blank=True),
        required=False,
        help_text="Parameters of the list of cases, such as `{'organ': 'colon'}`; `{}` takes all",
    )


class CasesTagSerializer(CaseSelectionSerializer):
    """Tags to add to cases and to remove from them."""

    add = serializers.ListField(
        child=serializers.CharField(max_length=MAX_TAG_LENGTH), max_length=MAX_TAGS, required=False
    )
    remove = serializers.ListField(
        child=serializers.CharField(max_length=MAX_TAG_LENGTH), max_length=MAX_TAGS, required=False
    )


class CasesDetailsSerializer(CaseSelectionSerializer):
    """Organ and diagnosis to set; one that is not given stays as it is."""

    organ = serializers.CharField(
        max_length=80,
        required=False,
        allow_blank=True,
        help_text="The organ, or its code in the lab's vocabulary; empty removes it",
    )
    diagnosis = serializers.CharField(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="The diagnosis, or its code in the lab's vocabulary; empty removes it",
    )


class CasesShareSerializer(CaseSelectionSerializer):
    """Lab and last day of new shares."""

    with_lab = serializers.CharField(
        max_length=120, help_text="Name or short name of the lab, exactly: labs are not listed"
    )
    until = serializers.DateField(help_text="The last day, UTC; at most a year ahead")


class CaseProblemSerializer(serializers.Serializer[Any]):
    """Reason why one case was left as it is."""

    case = serializers.UUIDField(source="case_id")
    accession = serializers.CharField(help_text="Empty if there is no such case")
    code = serializers.CharField()
    detail = serializers.CharField()


class BulkResultSerializer(serializers.Serializer[Any]):
    """Result of a change of many cases."""

    changed = serializers.ListField(
        child=serializers.UUIDField(), help_text="Ids of the cases that were changed"
    )
    unchanged = serializers.IntegerField(help_text="Number of cases that needed no change")
    problems = CaseProblemSerializer(many=True)


class CaseDetailsSerializer(serializers.Serializer[Any]):
    """Organ and diagnosis that cases had: a request that takes the change back."""

    cases = serializers.ListField(child=serializers.UUIDField())
    organ = serializers.CharField(required=False)
    diagnosis = serializers.CharField(required=False)

    def to_representation(self, instance: CaseDetails) -> dict[str, Any]:
        """Represent only the fields that the change set."""
        return {"cases": [str(pk) for pk in instance.cases], **instance.details}


class DetailsResultSerializer(BulkResultSerializer):
    """Result of a change of organ and diagnosis."""

    before = CaseDetailsSerializer(many=True)

"""REST: encoders."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework import mixins

from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import not_audited
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoders_visible
from portal.embeddings.serializers import EncoderSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

RETRY_AFTER_S = 2  # about the time to embed an ROI


@not_audited("no data of patients")
class EncoderViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Encoder]):
    """Encoders of all labs and those trained by the user's labs, defaults first."""

    area = TokenArea.SEARCH
    serializer_class = EncoderSerializer
    queryset = Encoder.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Encoder]:
        """Exclude encoders of other labs."""
        return encoders_visible(user_of(self.request))


router_entries = [("encoders", EncoderViewSet, "encoder")]

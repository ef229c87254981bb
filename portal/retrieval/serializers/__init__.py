"""REST's view of retrieval: what is asked, what is answered."""

from portal.retrieval.serializers.answers import (
    EncoderSerializer,
    SimilarSerializer,
    similar_represent,
)
from portal.retrieval.serializers.asked import (
    JudgementSerializer,
    SearchSerializer,
    SimilarQuerySerializer,
)
from portal.retrieval.serializers.queries import QueryAskSerializer, QuerySerializer

__all__ = [
    "EncoderSerializer",
    "JudgementSerializer",
    "QueryAskSerializer",
    "QuerySerializer",
    "SearchSerializer",
    "SimilarQuerySerializer",
    "SimilarSerializer",
    "similar_represent",
]

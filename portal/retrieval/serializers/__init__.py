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
from portal.retrieval.serializers.learning import LearningAskSerializer, LearningSerializer
from portal.retrieval.serializers.matches import MatchSerializer, match_represent
from portal.retrieval.serializers.places import PlacesAskedSerializer, PlacesSerializer
from portal.retrieval.serializers.queries import QueryAskSerializer, QuerySerializer
from portal.retrieval.serializers.reports import (
    ReportAgainSerializer,
    ReportAskSerializer,
    ReportSerializer,
    ReportWholeSerializer,
    changes_represent,
    report_represent,
)

__all__ = [
    "EncoderSerializer",
    "JudgementSerializer",
    "LearningAskSerializer",
    "LearningSerializer",
    "MatchSerializer",
    "PlacesAskedSerializer",
    "PlacesSerializer",
    "QueryAskSerializer",
    "QuerySerializer",
    "ReportAgainSerializer",
    "ReportAskSerializer",
    "ReportSerializer",
    "ReportWholeSerializer",
    "SearchSerializer",
    "SimilarQuerySerializer",
    "SimilarSerializer",
    "changes_represent",
    "match_represent",
    "report_represent",
    "similar_represent",
]

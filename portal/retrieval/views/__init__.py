"""Pages of retrieval."""

from portal.retrieval.views.pages import embed, judge, similar, thumbnail
from portal.retrieval.views.queries import (
    ask,
    picture,
    queries,
    query,
    query_mark,
    query_remove,
    query_thumbnail,
)

__all__ = [
    "ask",
    "embed",
    "judge",
    "picture",
    "queries",
    "query",
    "query_mark",
    "query_remove",
    "query_thumbnail",
    "similar",
    "thumbnail",
]

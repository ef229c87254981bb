"""Pages of retrieval."""

from portal.retrieval.views.browse import (
    browse,
    browse_draw,
    browse_duplicates,
    browse_label,
    browse_unannotated,
    browse_unlike,
    look_through,
)
from portal.retrieval.views.learning import (
    learning,
    learning_promote,
    learning_roll_back,
    learnings,
)
from portal.retrieval.views.pages import embed, judge, similar, thumbnail
from portal.retrieval.views.queries import (
    ask,
    picture,
    queries,
    query,
    query_embed,
    query_mark,
    query_remove,
    query_thumbnail,
)
from portal.retrieval.views.reports import (
    report,
    report_again,
    report_delete,
    report_file,
    report_picture,
    report_query,
    report_renew,
    report_roi,
    reports,
)
from portal.retrieval.views.why import query_why, why

__all__ = [
    "ask",
    "browse",
    "browse_draw",
    "browse_duplicates",
    "browse_label",
    "browse_unannotated",
    "browse_unlike",
    "embed",
    "judge",
    "learning",
    "learning_promote",
    "learning_roll_back",
    "learnings",
    "look_through",
    "picture",
    "queries",
    "query",
    "query_embed",
    "query_mark",
    "query_remove",
    "query_thumbnail",
    "query_why",
    "report",
    "report_again",
    "report_delete",
    "report_file",
    "report_picture",
    "report_query",
    "report_renew",
    "report_roi",
    "reports",
    "similar",
    "thumbnail",
    "why",
]

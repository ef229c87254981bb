"""Reads of a lab's map: what one person may see of it now."""

from portal.retrieval.selectors.browse.duplicates import (
    NAMES,
    Between,
    Duplicates,
    NearPair,
    near_duplicates,
)
from portal.retrieval.selectors.browse.maps import (
    MAP_KIND,
    MOST_REGIONS,
    MapCounts,
    MapSource,
    SeenMap,
    duplicate_radius,
    has_regions_to_map,
    map_counted,
    map_job_open,
    map_latest,
    map_list,
    map_seen,
    map_source,
)
from portal.retrieval.selectors.browse.points import COLOURS, Colouring, MapPoints, map_points
from portal.retrieval.selectors.browse.unannotated import (
    Novelty,
    Unannotated,
    UnannotatedPage,
    unannotated,
)
from portal.retrieval.selectors.browse.unlike import (
    Neighbour,
    UnlikeFound,
    UnlikeLabel,
    unlike_their_label,
)

__all__ = [
    "COLOURS",
    "MAP_KIND",
    "MOST_REGIONS",
    "NAMES",
    "Between",
    "Colouring",
    "Duplicates",
    "MapCounts",
    "MapPoints",
    "MapSource",
    "NearPair",
    "Neighbour",
    "Novelty",
    "SeenMap",
    "Unannotated",
    "UnannotatedPage",
    "UnlikeFound",
    "UnlikeLabel",
    "duplicate_radius",
    "has_regions_to_map",
    "map_counted",
    "map_job_open",
    "map_latest",
    "map_list",
    "map_points",
    "map_seen",
    "map_source",
    "near_duplicates",
    "unannotated",
    "unlike_their_label",
]

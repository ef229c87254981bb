"""A client of Tessera's REST API.

``Client`` is synchronous; ``AsyncClient`` has the same methods for an event loop.
"""

from tessera_client.aio import AsyncClient
from tessera_client.errors import (
    BusyError,
    ConflictError,
    InvalidError,
    JobError,
    NotAllowedError,
    NotFoundError,
    SignInError,
    TesseraError,
    UnreachableError,
)
from tessera_client.models import Canvas, Case, Job, Label, Mosaic, Roi, Slide, ThreadEntry, Video
from tessera_client.results import Hit, Learning, RegionMap, Report, Similar
from tessera_client.shapes import geojson_of, shape_of, table_of
from tessera_client.streams import Event
from tessera_client.sync import Client

__all__ = [
    "AsyncClient",
    "BusyError",
    "Canvas",
    "Case",
    "Client",
    "ConflictError",
    "Event",
    "Hit",
    "InvalidError",
    "Job",
    "JobError",
    "Label",
    "Learning",
    "Mosaic",
    "NotAllowedError",
    "NotFoundError",
    "RegionMap",
    "Report",
    "Roi",
    "SignInError",
    "Similar",
    "Slide",
    "TesseraError",
    "ThreadEntry",
    "UnreachableError",
    "Video",
    "geojson_of",
    "shape_of",
    "table_of",
]
__version__ = "0.1.0"

"""Small honest documents of regions, in every format that is read, to be damaged or packed."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

WIDTH_PX, HEIGHT_PX = 200, 150
"""Size of the still that documents are imported onto."""


def documents() -> dict[str, bytes]:
    """Name of the format -> bytes of an honest document."""
    ring = [[10, 10], [60, 10], [60, 60], [10, 10]]
    features = [
        {
            "type": "Feature",
            "id": f"5c01a1c0-5378-4b8a-94bf-a89c0542c6a{n}",
            "geometry": {"type": "Polygon", "coordinates": [ring]},
            "properties": {"objectType": "annotation", "name": f"Drüse {n}"},
        }
        for n in range(3)
    ]
    geojson = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    image = {"id": 1, "file_name": "a.png", "width": WIDTH_PX, "height": HEIGHT_PX}
    shape = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[1, 1, 9, 1, 9, 9]]}
    coco = {"images": [image], "annotations": [shape], "categories": [{"id": 1, "name": "a"}]}
    points = "".join(f'<Coordinate X="{x}" Y="{y}"/>' for x, y in ring)
    asap = (
        "<?xml version='1.0'?><ASAP_Annotations><Annotations><Annotation Name='a' Type='Polygon'>"
        f"<Coordinates>{points}</Coordinates></Annotation></Annotations></ASAP_Annotations>"
    ).encode()
    cvat = (
        f'<annotations><version>1.1</version><image id="0" name="a.png" width="{WIDTH_PX}" '
        f'height="{HEIGHT_PX}"><box label="a" xtl="1" ytl="1" xbr="9" ybr="9"/></image>'
        "</annotations>"
    ).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a\\b.geojson", geojson)
        archive.writestr("c.xml", cvat)
    return {
        "geojson": geojson,
        "geojson-gz": gzip.compress(geojson),
        "geojson-utf16": geojson.decode().encode("utf-16"),
        "documents-zip": packed.getvalue(),
        "coco": json.dumps(coco).encode(),
        "asap": asap,
        "cvat": cvat,
    }

"""Documents in the form in which each version of QuPath writes them: its members, their order, its
numbers and spaces. Outlines and classes are ours; no class is one of a lab's first labels, whose
colours would stand. Files that QuPath itself wrote are in ``formats/written``.
"""

from __future__ import annotations

V02 = """[
  {
    "type": "Feature",
    "id": "PathAnnotationObject",
    "geometry": {
      "type": "Polygon",
      "coordinates": [
        [
          [120, 80],
          [260, 80],
          [260, 190],
          [120, 190],
          [120, 80]
        ]
      ]
    },
    "properties": {
      "name": "first",
      "classification": {
        "name": "Front",
        "colorRGB": -3670016
      },
      "isLocked": false,
      "measurements": []
    }
  },
  {
    "type": "Feature",
    "id": "PathDetectionObject",
    "geometry": {
      "type": "Polygon",
      "coordinates": [
        [
          [130.5, 90.25],
          [140, 90],
          [141.25, 99.5],
          [130.5, 90.25]
        ]
      ]
    },
    "properties": {
      "classification": {
        "name": "Front: Positive",
        "colorRGB": -377282
      },
      "isLocked": false,
      "measurements": [
        {
          "name": "Circularity",
          "value": 0.8123
        },
        {
          "name": "DAB: Mean",
          "value": NaN
        }
      ]
    }
  }
]"""
"""0.2: the type stands in ``id``, measurements are a list, a colour is a packed integer."""

V03 = (
    '{"type":"FeatureCollection","features":['
    '{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[300, 40],[420.5, 40],'
    '[420.5, 130.75],[300, 130.75],[300, 40]]]},"properties":{"object_type":"annotation",'
    '"name":"Region 1","color":[0,128,255],"classification":'
    '{"name":"Desmoplasia","colorRGB":-6895466},"isLocked":true}},'
    '{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[310, 50],[322, 50],[322, 61],'
    '[310, 61],[310, 50]]]},"nucleusGeometry":{"type":"Polygon","coordinates":'
    "[[[313, 53],[318, 53],[318, 58],[313, 58],[313, 53]]]},"
    '"properties":{"object_type":"cell","isLocked":false,'
    '"measurements":[{"name":"Nucleus: Area","value":25.0},{"name":"Cell: Area","value":132.0}]}},'
    '{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[340, 50],[372, 50],[372, 82],'
    '[340, 82],[340, 50]]]},"properties":{"object_type":"tma_core","name":"B-7","isLocked":false,'
    '"isMissing":true}}]}'
)
"""0.3: ``object_type``, ``isLocked`` always, no ids."""

V05 = (
    '{"type":"FeatureCollection","features":['
    '{"type":"Feature","id":"0b6dcf0a-54d4-4b8e-9c0a-2f4f5a0c7d11","geometry":{"type":"Polygon",'
    '"coordinates":[[[500, 60],[640, 60],[640, 180],[500, 180],[500, 60]],[[540, 90],[540, 130],'
    '[590, 130],[590, 90],[540, 90]]]},"properties":{"objectType":"annotation","name":"ring",'
    '"color":[255, 0, 0],"classification":{"name":"Front","color":[200, 0, 0]},"isLocked":true,'
    '"measurements":{"Num detections":3.0,"Ratio":"NaN","Odds":"Infinity"},'
    '"metadata":{"ANNOTATION_DESCRIPTION":"Seen twice","Reader":"B"}}},'
    '{"type":"Feature","id":"57f0c8ad-9f5c-4f2b-8a55-1a9a3f0b6c02","geometry":{"type":"MultiPolygon",'
    '"coordinates":[[[[510, 200],[530, 200],[530, 220.5],[510, 220.5],[510, 200]]],[[[550, 200],'
    '[570.25, 200],[570.25, 220],[550, 220],[550, 200]]]]},"properties":{"objectType":"annotation",'
    '"classification":{"names":["Desmoplasia","Positive"],"color":[150, 200, 150]}}},'
    '{"type":"Feature","id":"b1b9c86e-2f0a-4d0f-8c5e-6a7c0d9e3f03","geometry":{"type":"Polygon",'
    '"coordinates":[[[510, 240],[521.5, 240],[521.5, 251],[510, 251],[510, 240]]]},'
    '"nucleusGeometry":{"type":"Polygon","coordinates":[[[513, 243],[518, 243],[518, 248],'
    '[513, 248],[513, 243]]]},"properties":{"objectType":"cell","classification":{"name":"Front",'
    '"color":[200, 0, 0]},"measurements":{"Nucleus: Area":25.0,"Cell: DAB: Mean":0.1325}}},'
    '{"type":"Feature","id":"c4b0ec11-7d1e-4b39-b7a3-0e6e86a2f904","geometry":{"type":"Polygon",'
    '"coordinates":[[[540, 240],[548, 240],[548, 247.5],[540, 247.5],[540, 240]]]},"properties":'
    '{"objectType":"detection","measurements":{"Area":60.0}}},'
    '{"type":"Feature","id":"d8a1b6f2-3c4d-4e5f-9a6b-7c8d9e0f1a05","geometry":{"type":"Polygon",'
    '"coordinates":[[[560, 240],[576, 240],[576, 256],[560, 256],[560, 240]]]},"properties":'
    '{"objectType":"tile"}},'
    '{"type":"Feature","id":"e0c2d3e4-5f60-4718-8293-a4b5c6d7e806","geometry":{"type":"Polygon",'
    '"coordinates":[[[600, 300],[640, 300],[640, 340],[600, 340],[600, 300]]]},"properties":'
    '{"objectType":"tmaCore","name":"A-1","isMissing":false}},'
    '{"type":"Feature","id":"f1d2e3f4-0a1b-4c2d-8e3f-405162738407","geometry":{"type":"LineString",'
    '"coordinates":[[20, 30],[120.75, 64]]},"properties":{"objectType":"annotation"}},'
    '{"type":"Feature","id":"a2e3f405-1b2c-4d3e-9f40-516273849508","geometry":{"type":"MultiPoint",'
    '"coordinates":[[21, 31],[44.5, 52]]},"properties":{"objectType":"annotation","name":"points"}}'
    "]}"
)
"""0.4 to 0.7: ids, ``objectType``, measurements by name, a colour as three numbers; what has no
value is left out."""

V07_VIDEO = (
    '{"type":"FeatureCollection","features":['
    '{"type":"Feature","id":"3c1d2e3f-4051-4627-8384-95a6b7c8d901","geometry":{"type":"Polygon",'
    '"coordinates":[[[10, 12],[40, 12],[40, 33],[10, 33],[10, 12]]],"plane":{"c":-1,"z":0,"t":3}},'
    '"properties":{"objectType":"annotation","metadata":{"Reader":"A"},"metadata":{"Reader":"A"}}}]}'
)
"""A plane that is not the first; ``metadata`` stands twice where it is not empty."""

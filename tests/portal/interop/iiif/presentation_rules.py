"""The rules of IIIF Presentation 3.0 that a manifest and a page of annotations must keep.

Source: IIIF Presentation API 3.0.0, sections 3 and 5: what is required of each type, and of what
type each value is.
"""

from __future__ import annotations

from typing import Any

CONTEXT = "http://iiif.io/api/presentation/3/context.json"
BODIES = {"Image": ("format",), "Video": ("format", "duration")}


def presentation_errors(document: dict[str, Any]) -> list[str]:
    """Errors of a document, each with its path; empty if it is valid."""
    violations: list[str] = []
    contexts = document.get("@context")
    if (contexts if isinstance(contexts, str) else (contexts or [""])[-1]) != CONTEXT:
        violations.append("@context: the presentation context comes last")
    {"Manifest": _manifest, "AnnotationPage": _page}[document["type"]](document, "", violations)
    return violations


def _manifest(one: dict[str, Any], at: str, found: list[str]) -> None:
    _identified(one, at, "Manifest", found)
    _text(one, "label", at, found, required=True)
    _pairs(one, at, found)
    items = one.get("items", [])
    if not items:
        found.append(f"{at}/items: a manifest must have a canvas")
    for index, canvas in enumerate(items):
        _canvas(canvas, f"{at}/items/{index}", found)
    if len({canvas["id"] for canvas in items}) != len(items):
        found.append(f"{at}/items: two canvases have one id")


def _canvas(one: dict[str, Any], at: str, found: list[str]) -> None:
    _identified(one, at, "Canvas", found)
    _text(one, "label", at, found, required=False)
    _pairs(one, at, found)
    if "#" in one["id"]:
        found.append(f"{at}/id: a canvas' id has no fragment")
    for side in ("width", "height"):
        if not isinstance(one.get(side), int) or one[side] <= 0:
            found.append(f"{at}/{side}: a positive integer")
    if "duration" in one and not one["duration"] > 0:
        found.append(f"{at}/duration: a positive number")
    for index, thumbnail in enumerate(one.get("thumbnail", [])):
        _body(thumbnail, f"{at}/thumbnail/{index}", found)
    for index, page in enumerate(one["items"]):
        _page(page, f"{at}/items/{index}", found, painted=one["id"])
    for index, page in enumerate(one.get("annotations", [])):
        _identified(page, f"{at}/annotations/{index}", "AnnotationPage", found)


def _page(one: dict[str, Any], at: str, found: list[str], painted: str = "") -> None:
    _identified(one, at, "AnnotationPage", found)
    for index, annotation in enumerate(one["items"]):
        here = f"{at}/items/{index}"
        _identified(annotation, here, "Annotation", found)
        is_painting = annotation.get("motivation") == "painting"
        if is_painting != bool(painted):
            found.append(f"{here}/motivation: painting stands in items, and only there")
        if painted and annotation.get("target") != painted:
            found.append(f"{here}/target: the canvas")
        if painted:
            _body(annotation["body"], f"{here}/body", found)
        elif not annotation["target"].get("source") or not annotation["target"].get("selector"):
            found.append(f"{here}/target: a source and a selector")


def _body(one: dict[str, Any], at: str, found: list[str]) -> None:
    if one.get("type") not in BODIES or not str(one.get("id", "")).startswith("http"):
        found.append(f"{at}: an image or a video with an id")
        return
    if one["type"] == "Video" or "width" in one:
        found.extend(f"{at}/{key}" for key in BODIES[one["type"]] if not one.get(key))
    for service in one.get("service", []):
        if service.get("type") != "ImageService3" or service.get("profile") != "level2":
            found.append(f"{at}/service: type and profile")


def _identified(one: dict[str, Any], at: str, kind: str, found: list[str]) -> None:
    if one.get("type") != kind:
        found.append(f"{at}/type: {kind}")
    if not str(one.get("id", "")).startswith("http"):
        found.append(f"{at}/id: an http(s) address")


def _pairs(one: dict[str, Any], at: str, found: list[str]) -> None:
    for index, pair in enumerate(one.get("metadata", [])):
        for key in ("label", "value"):
            _text(pair, key, f"{at}/metadata/{index}", found, required=True)


def _text(one: dict[str, Any], key: str, at: str, found: list[str], *, required: bool) -> None:
    value = one.get(key)
    if value is None and not required:
        return
    if not isinstance(value, dict) or not all(
        isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        for texts in value.values()
    ):
        found.append(f"{at}/{key}: texts by language")

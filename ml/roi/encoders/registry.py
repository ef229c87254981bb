"""Patch encoders by name."""

from __future__ import annotations

from collections.abc import Mapping

from ml.errors import UnknownNameError, WeightsError
from ml.roi.encoders.classical import ClassicalEncoder
from ml.roi.encoders.combined import CombinedEncoder
from ml.roi.encoders.foundation import PREFIX as FOUNDATION_PREFIX
from ml.roi.encoders.foundation import load_foundation
from ml.roi.encoders.hub import HF_PREFIX, TIMM_PREFIX, load_hub_encoder
from ml.roi.encoders.patch_cnn import NAME, PatchCnnEncoder
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.textons import NAME as TEXTONS
from ml.roi.encoders.textons import TextonEncoder


def make_patch_encoder(
    spec: str,
    *,
    cnn: PatchCnnEncoder | None = None,
    textons: TextonEncoder | None = None,
) -> PatchEncoder:
    """Create a patch encoder.

    Args:
        spec: "patch-cnn-2", "local-textons-1", "classical-1", "hub:NAME" (see
            ``encoders.recipes``), "hf:NAME-OR-FOLDER" or "timm:NAME" (see
            ``encoders.hub``), or several joined by "+".
        cnn, textons: Trained encoders, if named in ``spec``.
    Raises:
        UnknownNameError: Unknown name.
        WeightsError: A trained encoder is missing, or a published network cannot be loaded.
    """
    trained_encoders = {NAME: cnn, TEXTONS: textons}
    parts = [_part(name, trained_encoders) for name in spec.split("+")]
    return parts[0] if len(parts) == 1 else CombinedEncoder(parts)


def _part(name: str, trained_encoders: Mapping[str, PatchEncoder | None]) -> PatchEncoder:
    if name == ClassicalEncoder.name:
        return ClassicalEncoder()
    if name in trained_encoders:
        encoder = trained_encoders[name]
        if encoder is None:
            raise WeightsError(f"{name}: its weights are missing")
        return encoder
    if name.startswith(FOUNDATION_PREFIX):
        return load_foundation(name.removeprefix(FOUNDATION_PREFIX))
    if name.startswith((HF_PREFIX, TIMM_PREFIX)):
        return load_hub_encoder(name)
    published = [f"{prefix}<name>" for prefix in (FOUNDATION_PREFIX, HF_PREFIX, TIMM_PREFIX)]
    choices = [*trained_encoders, ClassicalEncoder.name, *published]
    raise UnknownNameError("patch encoder", name, choices)

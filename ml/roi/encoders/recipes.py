"""Configurations of published pathology foundation models, without the weights.

Names, sizes and transforms were read from the published code and model cards, and from Trident
(Mahmood Lab), which runs all of these models; ``unverified`` states what could not be read there.
The licences of the authors apply: read them before use, and before derived weights are shared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ml.errors import UnknownNameError
from ml.networks.vision_transformer import TransformerConfig
from ml.roi.encoders.pooling import CLS, CLS_MEAN
from ml.roi.encoders.transform import ImageTransform

_NON_COMMERCIAL = (
    "CC-BY-NC-ND-4.0: non-commercial research; the weights, altered or not, may not be passed on"
)


@dataclass(frozen=True, slots=True)
class AttentionPool:
    """Attention pooling by a learned query."""

    dim: int
    heads: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """A published model: source, licence, architecture and preprocessing."""

    name: str  # after ``hub:``
    repository: str  # on huggingface.co
    licence: str  # name and permitted use, in a sentence
    gated: bool  # download needs an account and agreement
    architecture: TransformerConfig
    transform: ImageTransform
    tile_px: int  # side of a patch read from the slide
    mpp: float  # microns per pixel of that patch
    pool: str | AttentionPool  # see pooling.POOLS
    dim: int  # of the vector
    half: str = (
        "float16"  # on a GPU, a dtype name of torch; "float32" if the published code uses it
    )
    files: tuple[str, ...] = (
        "model.safetensors",
        "pytorch_model.bin",
    )  # the first one that exists
    prefix: str = ""  # of the tensors in the file that are used
    layout: str = (
        "timm"  # names of the tensors; or "transformers", with its config.json in the same folder
    )
    unverified: str = ""  # information missing in the sources


_VIT_G = TransformerConfig(
    width=1536, depth=40, heads=24, patch_px=14, input_px=224, hidden=8192, gated=True
)

UNI2_H = Recipe(
    name="uni2-h",
    repository="MahmoodLab/UNI2-h",
    licence=_NON_COMMERCIAL,
    gated=True,
    architecture=replace(_VIT_G, depth=24, registers=8, prefix_positions=False),
    transform=ImageTransform(224, 224, interpolation="bilinear"),
    tile_px=256,
    mpp=0.5,
    pool=CLS,
    dim=1536,
    half="bfloat16",
)

VIRCHOW2 = Recipe(
    name="virchow2",
    repository="paige-ai/Virchow2",
    licence=_NON_COMMERCIAL,
    gated=True,
    architecture=TransformerConfig(
        width=1280,
        depth=32,
        heads=16,
        patch_px=14,
        input_px=224,
        hidden=6832,
        gated=True,
        registers=4,
    ),
    transform=ImageTransform(224, 224),
    tile_px=224,
    mpp=0.5,  # trained at 5x, 10x, 20x and 40x; its own tasks use 20x
    pool=CLS_MEAN,
    dim=2560,
)

PHIKON_V2 = Recipe(
    name="phikon-v2",
    repository="owkin/phikon-v2",
    licence="Owkin's non-commercial licence: non-commercial research",
    gated=False,
    architecture=TransformerConfig(
        width=1024, depth=24, heads=16, patch_px=16, input_px=224, hidden=4096
    ),
    transform=ImageTransform(224, 224),
    tile_px=224,
    mpp=0.5,
    pool=CLS,
    dim=1024,
    half="float32",
    files=("model.safetensors",),
    layout="transformers",
    unverified="Its config.json could not be read: sizes are those of the paper (ViT-L/16);"
    " those of the file beside the weights are used.",
)

H_OPTIMUS_0 = Recipe(
    name="h-optimus-0",
    repository="bioptimus/H-optimus-0",
    licence="Apache-2.0: anybody, for any purpose",
    gated=True,
    architecture=replace(_VIT_G, registers=4, prefix_positions=False),
    transform=ImageTransform(
        224, 224, mean=(0.707223, 0.578729, 0.703617), std=(0.211883, 0.230117, 0.177517)
    ),
    tile_px=224,
    mpp=0.5,
    pool=CLS,
    dim=1536,
)

H_OPTIMUS_1 = replace(
    H_OPTIMUS_0,
    name="h-optimus-1",
    repository="bioptimus/H-optimus-1",
    licence=_NON_COMMERCIAL,
)

GIGAPATH = Recipe(
    name="gigapath",
    repository="prov-gigapath/prov-gigapath",
    licence="Apache-2.0, with the authors' notice: research only, no deployed or clinical use",
    gated=True,
    architecture=replace(_VIT_G, patch_px=16),
    transform=ImageTransform(256, 224),
    tile_px=256,
    mpp=0.5,
    pool=CLS,
    dim=1536,
    files=("pytorch_model.bin",),
)

CONCH = Recipe(
    name="conch",
    repository="MahmoodLab/CONCH",
    licence=_NON_COMMERCIAL,
    gated=True,
    architecture=TransformerConfig(
        width=768, depth=12, heads=12, patch_px=16, input_px=448, hidden=3072, layer_scale=False
    ),
    transform=ImageTransform(
        448,
        448,
        mean=(0.48145466, 0.4578275, 0.40821073),
        std=(0.26862954, 0.26130258, 0.27577711),
    ),
    tile_px=512,
    mpp=0.5,
    pool=AttentionPool(dim=512, heads=8),
    dim=512,
    half="float32",
    files=("pytorch_model.bin",),
    prefix="visual.",
    unverified="Whether the file holds position embeddings for 448 px, as its configuration says;"
    " others are refused.",
)

RECIPES = {
    recipe.name: recipe
    for recipe in (UNI2_H, VIRCHOW2, PHIKON_V2, H_OPTIMUS_0, H_OPTIMUS_1, GIGAPATH, CONCH)
}


def recipe_of(name: str) -> Recipe:
    """Look up a recipe by name.

    Raises:
        UnknownNameError: Unknown recipe.
    """
    if name not in RECIPES:
        raise UnknownNameError("foundation model", name, list(RECIPES))
    return RECIPES[name]

"""Patch encoders from networks of transformers and timm, by name on the hub or by folder.

Images are preprocessed as in the configuration published with the weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from torch import Tensor, nn

from ml.errors import BadInputError, UnknownNameError, WeightsError
from ml.extras import require_extra
from ml.networks.device import select_compute
from ml.roi.encoders.pooling import CLS, MEAN, POOLS, pool_tokens
from ml.roi.encoders.published import PublishedEncoder
from ml.roi.encoders.transform import transform_of_processor, transform_of_timm
from ml.types import JsonObject

HF_PREFIX = "hf:"
TIMM_PREFIX = "timm:"
POOL_MARK = "#"
"""Separator of the pooling in ``hf:NAME#mean``."""
_CLASS_TOKENS = ("cls_token", "class_embedding")


@lru_cache(maxsize=4)
def load_hub_encoder(spec: str, device: str | None = None) -> PublishedEncoder:
    """Load a network of the hub as a patch encoder.

    Args:
        spec: "hf:NAME-OR-FOLDER" or "timm:NAME", with "#cls", "#mean" or "#cls_mean" for another
            pooling. Names of transformers are looked up in the cache of the hub.
        device: See ``select_compute``.
    Raises:
        UnknownNameError: Unknown pooling.
        WeightsError: Unknown network, or one that does not take images.
        MissingDependencyError: transformers, timm or torchvision is not installed.
    """
    source, _, pool = spec.partition(POOL_MARK)
    if pool and pool not in POOLS:
        raise UnknownNameError("pooling", pool, list(POOLS))
    if source.startswith(TIMM_PREFIX):
        return _timm_encoder(spec, source.removeprefix(TIMM_PREFIX), pool, device)
    name = source.removeprefix(HF_PREFIX)
    model, prefix = load_transformers(name, source)
    try:
        transform = transform_of_processor(_processor_config(name, source))
    except BadInputError as error:
        raise WeightsError(f"{source}: {error}") from error
    network = TokenPool(model, pool, prefix=prefix)
    return PublishedEncoder(spec, network, transform, device=select_compute(device).device)


class TokenPool(nn.Module):
    """A model of transformers with pooled output.

    Args:
        model: Returns ``last_hidden_state``, tokens (B, N, E) or features (B, E, H, W).
        pool: One of ``POOLS``; "" for the class token, or the mean if there is none.
        prefix: Number of class and register tokens before the patches.
    Raises:
        WeightsError: The pooling needs a class token and the model has none.
    """

    def __init__(self, model: Any, pool: str = "", *, prefix: int) -> None:
        super().__init__()
        self.model, self.prefix = model, prefix
        self.pool = pool or (CLS if prefix else MEAN)
        if not prefix and self.pool != MEAN:
            raise WeightsError(f"{type(model).__name__} has no class token: use {POOL_MARK}{MEAN}")

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, S, S) normalised pixels to (B, D)."""
        output = self.model(pixel_values=pixels)
        hidden: Tensor = output.last_hidden_state
        if hidden.ndim == 4:  # a convolutional network; its pooler may add a layer norm
            pooler_output = getattr(output, "pooler_output", None)
            return hidden.mean(dim=(2, 3)) if pooler_output is None else pooler_output.flatten(1)
        return pool_tokens(hidden, self.pool, prefix=self.prefix)


def load_transformers(source: str, where: str) -> tuple[Any, int]:
    """Load a model of transformers; return it and the number of tokens before its patches.

    Raises:
        WeightsError: Unknown model, or one that takes more than images.
        MissingDependencyError: transformers is not installed.
    """
    require_extra("transformers", extra="hub")
    from transformers import AutoModel  # imported here, as it takes a second

    try:
        model = AutoModel.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError, TypeError) as error:
        raise WeightsError(
            f"{where}: there is no image network; `hf download NAME` fetches one from the hub"
        ) from error
    if getattr(model, "main_input_name", "") != "pixel_values" or hasattr(model, "text_model"):
        raise WeightsError(f"{where}: {type(model).__name__} takes more than images")
    has_class = any(name.endswith(_CLASS_TOKENS) for name, _ in model.named_parameters())
    registers = int(getattr(model.config, "num_register_tokens", 0) or 0)
    return model, int(has_class) + registers


def _processor_config(source: str, where: str) -> JsonObject:
    from transformers import ImageProcessingMixin

    try:
        values, _ = ImageProcessingMixin.get_image_processor_dict(source, local_files_only=True)
    except (OSError, ValueError) as error:
        raise WeightsError(
            f"{where}: no preprocessor_config.json beside its weights, so how to prepare an image "
            "is not known"
        ) from error
    config: JsonObject = values  # keys differ between models
    return config


class _TimmPool(nn.Module):
    def __init__(self, model: Any, pool: str) -> None:
        super().__init__()
        self.model, self.pool = model, pool

    def forward(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.model.forward_features(pixels)
        prefix = int(getattr(self.model, "num_prefix_tokens", 0))
        if features.ndim == 3 and (self.pool or not getattr(self.model, "global_pool", "token")):
            return pool_tokens(features, self.pool or (CLS if prefix else MEAN), prefix=prefix)
        pooled: Tensor = self.model.forward_head(features, pre_logits=True)
        return pooled.flatten(1)


def _timm_encoder(spec: str, name: str, pool: str, device: str | None) -> PublishedEncoder:
    for package in ("timm", "torchvision"):
        require_extra(package, extra="timm")
    try:
        import timm
        from timm.data import resolve_model_data_config
    except (ImportError, RuntimeError) as error:
        raise WeightsError(
            f"{spec}: timm cannot be imported: is torchvision of the same build as torch?"
        ) from error
    try:
        model = timm.create_model(name, pretrained=True, num_classes=0)
        transform = transform_of_timm(resolve_model_data_config(model))
    except (OSError, ValueError, RuntimeError, BadInputError) as error:
        raise WeightsError(f"{spec}: timm has no such network, or no weights for it") from error
    return PublishedEncoder(
        spec, _TimmPool(model, pool), transform, device=select_compute(device).device
    )

"""Networks of transformers and timm as patch encoders, by name on the hub or by folder.

The transform is the network's own, from the file that its authors published beside the weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from torch import Tensor, nn

from ml.errors import BadInputError, UnknownNameError, WeightsError
from ml.extras import require_extra
from ml.networks.device import chosen_compute
from ml.roi.encoders.pooling import CLS, MEAN, POOLS, pooled
from ml.roi.encoders.published import PublishedEncoder
from ml.roi.encoders.transform import transform_of_processor, transform_of_timm
from ml.types import JsonObject

HF_PREFIX = "hf:"
TIMM_PREFIX = "timm:"
POOL_MARK = "#"
"""``hf:NAME#mean`` asks for another pooling than the network's own."""
_CLASS_TOKENS = ("cls_token", "class_embedding")


@lru_cache(maxsize=4)
def load_hub_encoder(spec: str, device: str | None = None) -> PublishedEncoder:
    """A network of the hub.

    Args:
        spec: "hf:NAME-OR-FOLDER" or "timm:NAME", with "#cls", "#mean" or "#cls_mean" for another
            pooling. Names of transformers are looked for in the hub's cache: `hf download NAME`.
        device: see ``chosen_compute``.
    Raises:
        UnknownNameError: no such pooling.
        WeightsError: there is no such network, or it does not see images.
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
    return PublishedEncoder(spec, network, transform, device=chosen_compute(device).device)


class TokenPool(nn.Module):
    """A model of transformers, its output pooled to one vector.

    Args:
        model: returns ``last_hidden_state``: (B, N, E) tokens or (B, E, H, W).
        pool: one of ``POOLS``; "" for the class token, or the mean where there is none.
        prefix: class and register tokens before those of the patches.
    Raises:
        WeightsError: the pooling needs a class token and the model has none.
    """

    def __init__(self, model: Any, pool: str = "", *, prefix: int) -> None:
        super().__init__()
        self.model, self.prefix = model, prefix
        self.pool = pool or (CLS if prefix else MEAN)
        if not prefix and self.pool != MEAN:
            raise WeightsError(f"{type(model).__name__} has no class token: use {POOL_MARK}{MEAN}")

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, S, S) normalised pixels to (B, D)."""
        answer = self.model(pixel_values=pixels)
        hidden: Tensor = answer.last_hidden_state
        if hidden.ndim == 4:  # a convolutional network; its pooler may add a layer norm
            own = getattr(answer, "pooler_output", None)
            return hidden.mean(dim=(2, 3)) if own is None else own.flatten(1)
        return pooled(hidden, self.pool, prefix=self.prefix)


def load_transformers(source: str, where: str) -> tuple[Any, int]:
    """A model of transformers by folder or name, and the number of tokens before its patches.

    Raises:
        WeightsError: there is none, or it takes more than images.
        MissingDependencyError: transformers is not installed.
    """
    require_extra("transformers", extra="hub")
    from transformers import AutoModel  # here: our own networks are spared the second it takes

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
    found: JsonObject = values  # the hub's own JSON: keys differ from model to model
    return found


class _TimmPool(nn.Module):
    def __init__(self, model: Any, pool: str) -> None:
        super().__init__()
        self.model, self.pool = model, pool

    def forward(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.model.forward_features(pixels)
        prefix = int(getattr(self.model, "num_prefix_tokens", 0))
        if features.ndim == 3 and (self.pool or not getattr(self.model, "global_pool", "token")):
            return pooled(features, self.pool or (CLS if prefix else MEAN), prefix=prefix)
        own: Tensor = self.model.forward_head(features, pre_logits=True)
        return own.flatten(1)


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
        spec, _TimmPool(model, pool), transform, device=chosen_compute(device).device
    )

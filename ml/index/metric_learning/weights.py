"""Serialisation of a linear map as a safetensors file.

The format is a length, a JSON header and the values. It is written without the safetensors package,
which the web processes do not load.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from ml.errors import WeightsError
from ml.types import ArrayF32, ArrayF64

_KEY, _METADATA = "matrix", "__metadata__"
_LENGTH_BYTES = 8  # of the header's length, little-endian
_MAX_HEADER_BYTES = 100_000  # headers written here have some hundred


def matrix_bytes(matrix: ArrayF64, metadata: Mapping[str, str]) -> bytes:
    """Serialise the matrix (D, D) as float32, with metadata."""
    data = np.ascontiguousarray(matrix, "<f4").tobytes()
    tensor = {"dtype": "F32", "shape": list(matrix.shape), "data_offsets": [0, len(data)]}
    header = json.dumps({_METADATA: {"architecture": "metric", **metadata}, _KEY: tensor}).encode()
    header += b" " * (-len(header) % _LENGTH_BYTES)  # the numbers begin at a multiple of eight
    return len(header).to_bytes(_LENGTH_BYTES, "little") + header + data


def matrix_of_bytes(data: bytes, dim: int) -> ArrayF32:
    """Read the (dim, dim) float32 matrix that ``matrix_bytes`` wrote.

    Raises:
        WeightsError: Damaged, of another size, or not finite.
    """
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    numbers = data[_LENGTH_BYTES + length :]
    try:
        header = data[_LENGTH_BYTES : _LENGTH_BYTES + min(length, _MAX_HEADER_BYTES)]
        tensor = json.loads(header)[_KEY]
        shape = tuple(tensor["shape"])
        is_expected = tensor["dtype"] == "F32" and tensor["data_offsets"] == [0, len(numbers)]
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError("not the weights of a metric, or damaged") from error
    if not is_expected or shape != (dim, dim) or len(numbers) != dim * dim * 4:
        raise WeightsError(f"expected a matrix of {dim} by {dim}, got {shape}, or it is damaged")
    matrix = np.frombuffer(numbers, "<f4").reshape(dim, dim).astype(np.float32)
    if not np.isfinite(matrix).all():
        raise WeightsError("the weights of a metric are not finite")
    return matrix

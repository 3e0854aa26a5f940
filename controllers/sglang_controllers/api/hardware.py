"""Parts of `spec.engine` that are about accelerators."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from sglang_controllers.api.model import Model, above_zero

Batch = Annotated[int, Field(ge=1, le=1_000_000)]


class Accelerator(Model):
    resource_name: str | None = Field(default=None, min_length=1, max_length=253)
    """Extended resource to ask for, for example `amd.com/gpu`. Default `nvidia.com/gpu`."""

    count: int | None = Field(default=None, ge=0, le=64)
    """Accelerators of each pod. Default: as many as `parallelism` needs. 0 runs the engine on the
    CPU."""


class Parallelism(Model):
    tensor: int | None = Field(default=None, ge=1, le=64)
    """Accelerators that each share one part of the model's weights, usually 1, 2, 4 or 8.
    Default 1."""

    pipeline: int | None = Field(default=None, ge=1, le=64)
    """Stages that the model's layers are cut into; each needs `tensor` accelerators. Default 1."""

    data: int | None = Field(default=None, ge=1, le=64)
    """Copies of the model in a pod; each needs `tensor` accelerators. With `dpAttention`: groups
    of ranks that `tensor` is cut into. Default 1."""

    dp_attention: bool | None = None
    """True cuts attention into `data` groups inside `tensor`, while the other layers stay tensor
    parallel; it saves KV cache for models with few key-value heads. Default false."""

    expert: int | None = Field(default=None, ge=1, le=64)
    """Groups of ranks that share the experts of a mixture-of-experts model; divides `tensor`.
    Default 1."""


class Memory(Model):
    fraction_static: float | None = Field(default=None, ge=0, le=1)
    """Part of each accelerator's memory for weights and KV cache; the rest is for activations and
    CUDA graphs. Lower it after out-of-memory errors. Default: by the accelerator's memory, mostly
    0.7 to 0.9."""

    rules = (above_zero("fraction_static", "0.85"),)


class GraphBackend(StrEnum):
    FULL = "full"
    BREAKABLE = "breakable"
    DISABLED = "disabled"


class DecodeGraph(Model):
    """Graphs of decode batches."""

    backend: Annotated[GraphBackend | None, Field(strict=False)] = None
    """`full` records a whole step, `breakable` parts of it, `disabled` nothing. Default `full`."""

    max_batch_size: Batch | None = None
    """Largest batch that is recorded, in requests; larger ones run slower. Default: by the
    accelerator's memory, 8 to 512."""

    batch_sizes: list[Batch] = Field(default_factory=list, max_length=512)
    """Batches that are recorded, in requests. Default: a series up to `maxBatchSize`."""


class PrefillGraph(Model):
    """Graphs of prefill batches."""

    backend: Annotated[GraphBackend | None, Field(strict=False)] = None
    """`full` records a whole step, `breakable` parts of it, `disabled` nothing. Default:
    `breakable` where model and hardware allow it."""

    max_batch_size: Batch | None = None
    """Largest batch that is recorded, in tokens. Default: by `scheduling.chunkedPrefillSize`."""

    batch_sizes: list[Batch] = Field(default_factory=list, max_length=512)
    """Batches that are recorded, in tokens. Default: a series up to `maxBatchSize`."""


class CudaGraph(Model):
    decode: DecodeGraph = Field(default_factory=DecodeGraph)
    """Graphs of decode batches, which produce one token for each request."""

    prefill: PrefillGraph = Field(default_factory=PrefillGraph)
    """Graphs of prefill batches, which read prompts."""

"""`spec.engine`: what runs in a pod, and on what."""

from typing import Annotated, Any

from pydantic import Field

from sglang_controllers.api.duration import DURATION_PATTERN, duration_s
from sglang_controllers.api.files import Word
from sglang_controllers.api.hardware import Accelerator, CudaGraph, Memory, Parallelism
from sglang_controllers.api.kubernetes import EnvVar, Quantity, Resources
from sglang_controllers.api.model import Model, Rule, ShapedBy, Worded, each_once, list_map

EnvEntry = Annotated[dict[str, Any], ShapedBy(EnvVar)]

Version = Annotated[
    str, Worded(r"^[0-9][0-9A-Za-z._-]*$", 'a release is a number, without a v; write "0.5.23"', 64)
]
Image = Annotated[
    str, Worded(r"^\S+$", 'an image has no blanks; write "docker.io/lmsysorg/sglang:v0.5.23"', 1024)
]

MAX_TIMEOUT_S = 24 * 3600


def _timeout_holds(timeout: str | None) -> bool:
    if timeout is None:
        return True
    try:
        return 0 < duration_s(timeout) <= MAX_TIMEOUT_S
    except ValueError:
        return False


def _enough_accelerators(engine: "Engine") -> bool:
    count, ranks = engine.accelerator.count, engine.parallelism
    copies = 1 if ranks.dp_attention else ranks.data or 1
    return not count or count >= (ranks.tensor or 1) * (ranks.pipeline or 1) * copies


def _size(field: str) -> str:
    """A size of `parallelism` in CEL, 1 when unset."""
    path = f"self.parallelism.{field}"
    return f"(has(self.parallelism) && has({path}) ? {path} : 1)"


def _no_accelerator_in_resources(engine: "Engine") -> bool:
    name = engine.accelerator.resource_name or "nvidia.com/gpu"
    return not any(name in (engine.resources.get(kind) or {}) for kind in ("requests", "limits"))


class Engine(Model):
    version: Version | None = None
    """SGLang release that runs, a number without the v: the image `lmsysorg/sglang:v<version>`, or
    what `image` holds. Settings are checked against it. Default `0.5.23`."""

    allow_unknown_version: bool | None = None
    """True takes a `version` that the operator does not know, or an image with arguments of its
    own: then names and values of arguments are left to SGLang to check. A change restarts nothing.
    Default false."""

    image: Image | None = None
    """Image to run instead of SGLang's own. It must start SGLang with
    `python3 -m sglang.launch_server`."""

    accelerator: Accelerator = Field(default_factory=Accelerator)
    """Accelerators of each engine pod. Default: one `nvidia.com/gpu` for each rank."""

    parallelism: Parallelism = Field(default_factory=Parallelism)
    """How the model is spread over the accelerators of a pod. Default: not at all."""

    memory: Memory = Field(default_factory=Memory)
    """How each accelerator's memory is divided."""

    cuda_graph: CudaGraph = Field(default_factory=CudaGraph)
    """Batches whose work is recorded once and replayed, which saves launch time."""

    attention_backend: Word | None = None
    """Kernels of the attention layers, for example `flashinfer`, `fa3` or `triton`. Default:
    SGLang's choice for hardware and model."""

    grammar_backend: Word | None = None
    """What keeps answers to a JSON schema or grammar: `xgrammar`, `outlines`, `llguidance` or
    `none`. Default `xgrammar`."""

    resources: Annotated[dict[str, Any], ShapedBy(Resources)] = Field(default_factory=dict)

    shared_memory: Quantity | None = None
    """Size of /dev/shm, which tensor-parallel ranks talk through. Default `8Gi`."""

    env: Annotated[list[EnvEntry], each_once("name")] = Field(
        default_factory=list,
        max_length=128,
        json_schema_extra=list_map("name"),
    )
    """Environment variables of the engine. One that the operator sets too wins over the
    operator's."""

    extra_args: dict[str, Any] = Field(default_factory=dict, max_length=256)
    """SGLang arguments that have no field of their own, by flag without dashes: a string or
    number, true for a flag without a value, a list for several values, an object for JSON. For
    example {max-total-tokens: 20000, enable-cache-report: true}."""

    startup_timeout: str | None = Field(default=None, max_length=20)
    """How long an engine may load before it is restarted, in hours, minutes and seconds: `90s`,
    `30m`, `1h30m`. At most 24h. Default `30m`. A change restarts nothing; it holds for pods of the
    next revision."""

    drain_timeout: str | None = Field(default=None, max_length=20)
    """How long an engine or a router that has to stop may go on with the requests that it has
    begun, in hours, minutes and seconds. It gets no new ones meanwhile, and ends sooner when it has none left. Then
    it is told to stop, and killed 30 seconds later. At most 24h. Default `2m`."""

    rules = (
        Rule(
            field="drainTimeout",
            seen="drainTimeout",
            message='a duration needs units (h, m or s), more than 0s and at most 24h; write "2m"',
            cel=f"!has(self.drainTimeout) || (self.drainTimeout.matches('{DURATION_PATTERN}') "
            "&& duration(self.drainTimeout) > duration('0s') "
            "&& duration(self.drainTimeout) <= duration('24h'))",
            holds=lambda engine: _timeout_holds(engine.drain_timeout),
        ),
        Rule(
            field="startupTimeout",
            seen="startupTimeout",
            message='a duration needs units (h, m or s), more than 0s and at most 24h; write "30m"',
            cel=f"!has(self.startupTimeout) || (self.startupTimeout.matches('{DURATION_PATTERN}') "
            "&& duration(self.startupTimeout) > duration('0s') "
            "&& duration(self.startupTimeout) <= duration('24h'))",
            holds=lambda engine: _timeout_holds(engine.startup_timeout),
        ),
        Rule(
            field="accelerator.count",
            message="must be at least tensor x pipeline x data of spec.engine.parallelism (without"
            " data when dpAttention is true), or 0 to run on the CPU; remove it to get as many as"
            " needed",
            cel="!has(self.accelerator) || !has(self.accelerator.count) || "
            "self.accelerator.count == 0 || self.accelerator.count >= "
            f"{_size('tensor')} * {_size('pipeline')} * "
            "(has(self.parallelism) && has(self.parallelism.dpAttention) && "
            f"self.parallelism.dpAttention ? 1 : {_size('data')})",
            holds=_enough_accelerators,
        ),
        Rule(
            field="resources",
            message="accelerators are not asked for here; remove them and "
            "set spec.engine.accelerator.count",
            cel="!has(self.resources) || ["
            "has(self.resources.requests) ? self.resources.requests : {}, "
            "has(self.resources.limits) ? self.resources.limits : {}].all(kind, !("
            "(has(self.accelerator) && has(self.accelerator.resourceName) ? "
            "self.accelerator.resourceName : 'nvidia.com/gpu') in kind))",
            holds=_no_accelerator_in_resources,
        ),
    )

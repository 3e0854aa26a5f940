"""`spec.engine`: what runs in a pod, and on what."""

from typing import Annotated, Any

from pydantic import Field

from sglang_controllers.api.duration import DURATION_PATTERN, duration_s
from sglang_controllers.api.kubernetes import EnvVar, Quantity, Resources
from sglang_controllers.api.model import Model, Rule, ShapedBy, each_once, list_map

EnvEntry = Annotated[dict[str, Any], ShapedBy(EnvVar)]

MAX_STARTUP_TIMEOUT_S = 24 * 3600


class Accelerator(Model):
    resource_name: str | None = Field(default=None, min_length=1, max_length=253)
    """Extended resource to ask for, for example `amd.com/gpu`. Default `nvidia.com/gpu`."""

    count: int | None = Field(default=None, ge=0, le=64)
    """Accelerators of each pod. Default: `parallelism.tensor`. 0 runs the engine on the CPU."""


class Parallelism(Model):
    tensor: int | None = Field(default=None, ge=1, le=64)
    """Accelerators that each share one part of the model's weights, usually 1, 2, 4 or 8.
    Default 1."""


def _startup_timeout_holds(engine: "Engine") -> bool:
    if engine.startup_timeout is None:
        return True
    try:
        return 0 < duration_s(engine.startup_timeout) <= MAX_STARTUP_TIMEOUT_S
    except ValueError:
        return False


def _enough_accelerators(engine: "Engine") -> bool:
    return not engine.accelerator.count or engine.accelerator.count >= (
        engine.parallelism.tensor or 1
    )


def _no_accelerator_in_resources(engine: "Engine") -> bool:
    name = engine.accelerator.resource_name or "nvidia.com/gpu"
    return not any(name in (engine.resources.get(kind) or {}) for kind in ("requests", "limits"))


class Engine(Model):
    version: str | None = Field(
        default=None, pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]*$", max_length=64
    )
    """SGLang release whose image is run, `lmsysorg/sglang:v<version>`. Not used when `image` is
    set. Default `0.5.23`."""

    image: str | None = Field(default=None, min_length=1, max_length=1024)
    """Image to run instead of SGLang's own. It must start SGLang with
    `python3 -m sglang.launch_server`."""

    accelerator: Accelerator = Field(default_factory=Accelerator)
    """Accelerators of each engine pod. Default: one `nvidia.com/gpu` for each tensor-parallel
    rank."""

    parallelism: Parallelism = Field(default_factory=Parallelism)
    """How the model is spread over the accelerators of a pod. Default: not at all."""

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
    example {mem-fraction-static: 0.8, trust-remote-code: true}."""

    startup_timeout: str | None = Field(default=None, max_length=20)
    """How long an engine may load before it is restarted, in hours, minutes and seconds: `90s`,
    `30m`, `1h30m`. At most 24h. Default `30m`. A change restarts nothing; it holds for pods of the
    next revision."""

    rules = (
        Rule(
            field="startupTimeout",
            seen="startupTimeout",
            message='a duration needs units (h, m or s), more than 0s and at most 24h; write "30m"',
            cel=f"!has(self.startupTimeout) || (self.startupTimeout.matches('{DURATION_PATTERN}') "
            "&& duration(self.startupTimeout) > duration('0s') "
            "&& duration(self.startupTimeout) <= duration('24h'))",
            holds=_startup_timeout_holds,
        ),
        Rule(
            field="accelerator.count",
            message="must be at least spec.engine.parallelism.tensor"
            " (one accelerator for each rank), or 0 to run on the CPU; remove it to get as many as"
            " needed",
            cel="!has(self.accelerator) || !has(self.accelerator.count) || "
            "self.accelerator.count == 0 || self.accelerator.count >= "
            "(has(self.parallelism) && has(self.parallelism.tensor) ? self.parallelism.tensor : 1)",
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

"""`spec`: what a user wants of a SGLangCluster."""

from typing import Annotated, Any

from pydantic import Field

from sglang_controllers.api.cache import Cache
from sglang_controllers.api.engine import Engine
from sglang_controllers.api.files import ModelFiles
from sglang_controllers.api.kubernetes import PodTemplate
from sglang_controllers.api.model import Model, ShapedBy
from sglang_controllers.api.operation import Disruption, Rollout, Service
from sglang_controllers.api.router import Router
from sglang_controllers.api.scheduling import Scheduling
from sglang_controllers.api.speculative import Speculative

MAX_INT32 = 2**31 - 1


class ClusterSpec(Model):
    """What runs: a model, how many engines serve it, and how."""

    # The only default of the CRD: /scale and `kubectl scale` need a number to be there.
    replicas: int = Field(
        default=1, ge=0, le=MAX_INT32, json_schema_extra={"default": 1, "format": "int32"}
    )
    """Engines that serve the model. 0 stops all. Default 1. A change restarts nothing."""

    paused: bool = False
    """True makes the operator change nothing but the status, until it is false again. Default
    false."""

    model: ModelFiles
    """The model that is served."""

    engine: Engine = Field(default_factory=Engine)
    """The SGLang engine: its image, accelerators and arguments."""

    cache: Cache = Field(default_factory=Cache)
    """The KV cache of each engine, which lets requests with a common prefix share work."""

    scheduling: Scheduling = Field(default_factory=Scheduling)
    """How each engine orders and overlaps its requests."""

    speculative: Speculative = Field(default_factory=Speculative)
    """Speculative decoding: several tokens drafted cheaply and verified in one step."""

    router: Router = Field(default_factory=Router)
    """SGLang's Model Gateway, which spreads requests over the engines. A change restarts routers
    only."""

    service: Service = Field(default_factory=Service)
    """The Service by which clients reach the cluster, named like it, port 8000."""

    rollout: Rollout = Field(default_factory=Rollout)
    """How a change that needs new pods replaces the old ones."""

    disruption: Disruption = Field(default_factory=Disruption)
    """What may be taken away by others: the cluster's PodDisruptionBudget."""

    pod_template: Annotated[dict[str, Any], ShapedBy(PodTemplate)] = Field(default_factory=dict)

"""What the shell saw at one moment: the planner's only input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sglang_controllers.images import Images
from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.reports import Drain, EngineReport, RouterReport
from sglang_controllers.warming.sources import Source


@dataclass(frozen=True, slots=True)
class WriteError:
    """What the API server answered to the last write of an object.

    `code` is the HTTP status, `reason` the API's reason (AlreadyExists, Invalid, Forbidden, ...).
    """

    verb: str
    code: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One SGLangCluster and everything around it.

    `children` are objects that carry the cluster's label, whoever owns them. `events` are
    Warning events and Killing ones by pod uid. `errors` holds the last failure of each object whose latest write
    failed; a success removes it. Reports are by pod uid; `drains` are those that ended of late.
    `warming_sources` are ConfigMaps that prompts are read from, None for one that is not there. One
    that has not been read yet is missing.
    """

    cluster: Manifest
    now: datetime
    children: Mapping[ObjectKey, Manifest] = field(default_factory=dict)
    pods: tuple[Manifest, ...] = ()
    events: Mapping[str, tuple[Manifest, ...]] = field(default_factory=dict)
    errors: Mapping[ObjectKey, WriteError] = field(default_factory=dict)
    engine_reports: Mapping[str, EngineReport] = field(default_factory=dict)
    router_reports: Mapping[str, RouterReport] = field(default_factory=dict)
    drains: tuple[Drain, ...] = ()
    images: Images = field(default_factory=Images)
    warming_sources: Mapping[str, Source | None] = field(default_factory=dict)

"""What agents leave behind in their pods: how a drain ended."""

import json
from collections import OrderedDict
from typing import Any

from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_controllers.reports import Drain
from sglang_operator.cache import uid_of

OUTCOMES = ("drained", "cut", "restarted")
"""An agent's. Nothing else becomes a label of a metric."""

MOST = 1_000_000
"""Of seconds and of requests. What says more was not written by an agent."""

REMEMBERED = 10_000
"""Pods whose drain was seen. It only has to outlast their last events."""


class Drains:
    """Tells news of drains from what was seen already."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()

    def news(self, pod: Manifest) -> Drain | None:
        """The drain of a pod, the first time that it is there to be seen."""
        drain = drain_of(pod)
        if drain is None or drain.uid in self._seen:
            return None
        self._seen[drain.uid] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return drain


def drain_of(pod: Manifest) -> Drain | None:
    """What the agent of a pod said when it ended. None: nothing that can be read."""
    try:
        drain = json.loads(_last_message(pod))["drain"]
        outcome, seconds, in_flight = drain["outcome"], drain["seconds"], drain["in_flight"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None  # without a drain its last lines of log are there, or nothing
    if outcome not in OUTCOMES or not _is_number(seconds):
        return None
    return Drain(
        uid=uid_of(pod),
        pod=pod["metadata"]["name"],
        outcome=outcome,
        seconds=seconds,
        in_flight=in_flight if isinstance(in_flight, int) and _is_number(in_flight) else None,
    )


def _last_message(pod: Manifest) -> str:
    for status in (pod.get("status") or {}).get("initContainerStatuses") or ():
        if status.get("name") == names.AGENT_CONTAINER:
            ended = (status.get("state") or {}).get("terminated") or {}
            return str(ended.get("message") or "")
    return ""


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= MOST  # NaN is not

"""Which pods a ReplicaSet should take away first: those with the least to finish.

Kubernetes deletes pods that are not ready before those that are, and of the latter the ones with
the lowest pod-deletion-cost first.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import DELETION_COST
from sglang_controllers.pods import is_alive, is_ready, uid_of
from sglang_controllers.reports import EngineReport

FRESH_S = 2
"""A report that is older says little about the load now."""

TOO_MANY = 25
"""Agents that do not answer."""


def must_ask(
    pods: Sequence[Manifest], reports: Mapping[str, EngineReport], wanted: int, now: datetime
) -> bool:
    """Whether the choice has to wait for fresh reports of the pods, of one Deployment.

    An agent that was asked and did not answer holds nothing up.
    """
    ready = [pod for pod in pods if is_ready(pod)]
    if not _is_a_choice(pods, ready, wanted):
        return False
    known = [reports.get(uid_of(pod)) for pod in ready]
    silent = sum(1 for report in known if report is not None and report.in_flight is None)
    # So many that do not answer take all the time there is to ask the others.
    return silent < TOO_MANY and any(_is_stale(report, now) for report in known)


def _is_stale(report: EngineReport | None, now: datetime) -> bool:
    if report is None:
        return True
    return report.in_flight is not None and now - report.asked_at > timedelta(seconds=FRESH_S)


def deletion_costs(
    pods: Sequence[Manifest], reports: Mapping[str, EngineReport], wanted: int
) -> dict[str, int]:
    """New costs by pod name, of pods whose cost has to change. Unknown load counts as the most."""
    ready = [pod for pod in pods if is_ready(pod)]
    if not _is_a_choice(pods, ready, wanted):
        return {}
    loads = {uid_of(pod): _load(reports.get(uid_of(pod))) for pod in ready}
    ranks = {load: rank for rank, load in enumerate(sorted(set(loads.values())))}
    costs = {pod["metadata"]["name"]: ranks[loads[uid_of(pod)]] for pod in ready}
    present = {pod["metadata"]["name"]: _cost(pod) for pod in ready}
    return {name: cost for name, cost in costs.items() if cost != present[name]}


def _is_a_choice(pods: Sequence[Manifest], ready: Sequence[Manifest], wanted: int) -> bool:
    """Some ready pod has to go, and another one stays."""
    surplus = sum(map(is_alive, pods)) - wanted
    idle = sum(map(is_alive, pods)) - len(ready)
    return idle < surplus and wanted > 0


def _load(report: EngineReport | None) -> float:
    known = report.in_flight if report else None
    return float("inf") if known is None else known


def _cost(pod: Manifest) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:  # Kubernetes takes it for 0
        return 0

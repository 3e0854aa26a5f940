"""Marks on pods: kubelet brings a pod's volumes up to date at once when the pod changes.

Without one it took 89 s in a measurement, with one less than a second. A mark is the hash of the
slots, how often it was set before to no effect, and when: `<hash>.<tries>.<Unix time>`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import WARMING_ANNOTATION
from sglang_controllers.pods import is_alive, revision_of, uid_of
from sglang_controllers.reports import EngineReport

FIRST_PATIENCE_S = 10
"""For a pod to show what it was marked with. It doubles with each try."""

TRIES = 5
"""After these, kubelet's own round has been due for long."""


@dataclass(frozen=True, slots=True)
class Marks:
    """New annotations by pod name. `unseen`: a pod was marked, and still shows something else."""

    new: Mapping[str, str]
    unseen: bool


class _Mark(NamedTuple):
    hash: str
    tries: int
    at_s: int

    def __str__(self) -> str:
        return f"{self.hash}.{self.tries}.{self.at_s}"


def marks(
    pods: Iterable[Manifest],
    reports: Mapping[str, EngineReport],
    revision: str,
    wanted: str,
    now: datetime,
) -> Marks:
    """`revision` is the current one. Pods of others may warm, too: then their agent says so."""
    new: dict[str, str] = {}
    unseen, now_s = False, int(now.timestamp())
    for pod in pods:
        report = reports.get(uid_of(pod))
        shown = report.warming.sources if report and report.warming else None
        if not _runs(pod) or (shown is None and revision_of(pod) != revision):
            continue
        mark = _mark_of(pod)
        # One of the future would never be set again: somebody wrote it, or a clock was wrong.
        if mark.hash != wanted or mark.at_s > now_s + FIRST_PATIENCE_S:
            new[pod["metadata"]["name"]] = str(_Mark(wanted, 0, now_s))
        elif report and shown not in (None, wanted) and mark.tries < TRIES:
            due_s = mark.at_s + FIRST_PATIENCE_S * 2**mark.tries
            if report.asked_at.timestamp() >= due_s:
                new[pod["metadata"]["name"]] = str(_Mark(wanted, mark.tries + 1, now_s))
            unseen = True
    return Marks(new, unseen)


def _runs(pod: Manifest) -> bool:
    """A pod that is still to be made gets the slots as they are then."""
    return is_alive(pod) and (pod.get("status") or {}).get("phase") == "Running"


def _mark_of(pod: Manifest) -> _Mark:
    """Anybody may have written it. Without one a pod shows no slots."""
    text = str((pod["metadata"].get("annotations") or {}).get(WARMING_ANNOTATION, ""))
    hash_, _, rest = text.partition(".")
    tries, _, at_s = rest.partition(".")
    if not (tries.isdecimal() and at_s.isdecimal() and len(rest) < 20):
        return _Mark("" if not text else "?", 0, 0)
    return _Mark(hash_, int(tries), int(at_s))

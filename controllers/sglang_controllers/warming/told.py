"""What status says of warming: the condition `Warmed` and a summary.

Both change when engines begin or end to warm, not with every prompt. `Ready` is about serving: no
prompt makes it false, but the gate that a user asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sglang_controllers.api.warming import Warming
from sglang_controllers.diagnosis import Finding
from sglang_controllers.manifest import Manifest
from sglang_controllers.names import AGENT_PORT, ENGINE_CONTAINER
from sglang_controllers.pods import is_alive, is_ready, revision_of, uid_of
from sglang_controllers.reasons import Reason
from sglang_controllers.reports import EngineReport, PromptFailure, WarmingReport
from sglang_controllers.resources.warming import gate_timeout
from sglang_controllers.warming.slots import SLOT_BYTES, SLOTS, Slots

MOST_FAILURES = 20
"""That status lists; an agent tells no more."""

QUIET = frozenset({str(Reason.WARMING), "NoEngines", "SourcesUnread", "AgentsSilent"})
"""Reasons that no event tells of."""


@dataclass(frozen=True, slots=True)
class Told:
    """The condition `Warmed`."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Warmth:
    """`gated` pods wait to be warm, `gate` at most."""

    condition: Told
    summary: Manifest
    gated: int
    gate: str


def warmth(  # noqa: PLR0913, PLR0917  all that it is told from
    warming: Warming,
    slots: Slots | None,
    revision: str,
    pods: Iterable[Manifest],
    reports: Mapping[str, EngineReport],
    refused: Finding | None = None,
) -> Warmth:
    """`slots` None: not every ConfigMap has been read. Pods of older revisions do not count.

    `refused`: why the API server has no up-to-date copies.
    """
    mine = [pod for pod in pods if is_alive(pod) and revision_of(pod) == revision]
    said = [_said(pod, reports) for pod in mine]
    wanted = slots.hash if slots else ""
    done = [each for each in said if each and each.done and each.sources == wanted]
    late = sum(1 for each in said if each and each.state == "timed_out")
    gate, gated = gate_timeout(warming), 0
    if gate:
        pairs = zip(mine, said, strict=True)
        gated = sum(_is_gated(pod) and each is not None and each.gated for pod, each in pairs)
    silent = sum(_is_silent(pod, reports) for pod in mine)
    return Warmth(
        condition=_kept_out(slots, refused) or _condition(len(mine), said, done, late, silent),
        summary=_summary(len(mine), done),
        gated=gated,
        gate=gate or "",
    )


def _said(pod: Manifest, reports: Mapping[str, EngineReport]) -> WarmingReport | None:
    report = reports.get(uid_of(pod))
    if report is None or (report.in_flight is None and not is_ready(pod)):
        return None  # what was said before may be over: Kubernetes, too, gets no good answer
    return report.warming


def _is_silent(pod: Manifest, reports: Mapping[str, EngineReport]) -> bool:
    """It serves, so that its agent answers Kubernetes, and we know nothing of its prompts."""
    report = reports.get(uid_of(pod))
    heard = report is not None and (report.warming or report.in_flight is not None)
    return is_ready(pod) and not heard


def _is_gated(pod: Manifest) -> bool:
    """Its engine is ready, and its agent does not let it be."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ready = any(s.get("name") == ENGINE_CONTAINER and s.get("ready") for s in statuses)
    return ready and not is_ready(pod)


def _kept_out(slots: Slots | None, refused: Finding | None) -> Told | None:
    """Why prompts that are named do not get to engines; None: they do. First what to mend first."""
    if slots is None:
        return Told(
            "Unknown",
            "SourcesUnread",
            "the ConfigMaps of cache.warming cannot be read yet; the operator's log says why",
        )
    if refused:
        return Told("False", str(refused.reason), f"prompts are not copied: {refused.message}")
    if slots.copied:
        return Told(
            "False",
            str(Reason.WARMING_SOURCE_MISSING),
            f"nothing is read from {_listed(slots.copied)}, which an operator made for engines. "
            "Name a ConfigMap of your own in spec.cache.warming.promptsFrom",
        )
    if slots.missing:
        return Told(
            "False",
            str(Reason.WARMING_SOURCE_MISSING),
            f"there is no {_listed(slots.missing)}. Engines serve without; create it, or correct "
            "spec.cache.warming.promptsFrom",
        )
    if slots.too_large:
        return Told(
            "False",
            str(Reason.WARMING_SOURCE_TOO_LARGE),
            f"there is no room for {_listed(slots.too_large)}: ConfigMaps may hold {SLOTS} x "
            f"{SLOT_BYTES:,} bytes together, each key within one of these. Engines serve without; "
            "shorten it, or use a persistentVolumeClaim in spec.cache.warming.promptsFrom",
        )
    return None


def _condition(
    pods: int,
    said: Sequence[WarmingReport | None],
    done: Sequence[WarmingReport],
    late: int,
    silent: int,
) -> Told:
    if not pods:
        return Told("Unknown", "NoEngines", "no engine runs")
    if silent:
        return Told(
            "Unknown",
            "AgentsSilent",
            f"{silent} of {pods} do not tell the operator what they have warmed: let it reach "
            f"port {AGENT_PORT} of their pods",
        )
    left = [each.tenths for each in said if each and not each.done]
    return _progress(pods, done, late, min(left, default=0))


def _progress(pods: int, done: Sequence[WarmingReport], late: int, tenths: int) -> Told:
    engines = f"{len(done)} of {pods} engine{'' if pods == 1 else 's'}"
    if late:
        return Told(
            "False",
            "GateTimedOut",
            f"{late} of {pods} serve since cache.warming.gate.timeout was over, and go on warming. "
            "Raise it, or name fewer prompts",
        )
    if len(done) < pods:
        so_far = f", the slowest {10 * tenths} % of them so far" if 0 < tenths < 10 else ""
        return Told("False", str(Reason.WARMING), f"{engines} warmed their prompts{so_far}")
    failed = max(each.failed for each in done)
    if failed:
        return Told(
            "False",
            "PromptsFailed",
            f"{failed} of {_prompts(done)} prompts cannot be warmed: see status.warming.failures "
            "for where they are, the agent's log for why. The others are warmed",
        )
    if any(each.state == "full" for each in done):
        return Told(
            "False",
            "CacheFull",
            f"{min(each.warmed for each in done)} prompts are warmed, the others would evict them. "
            "Name fewer prompts, or give the KV cache more memory",
        )
    return Told("True", "Warmed", f"{engines} warmed {_prompts(done)} prompts")


def _listed(what: Sequence[str]) -> str:
    more = len(what) - 3
    return ", ".join(what[:3]) + (f" and {more} more" if more > 0 else "")


def _prompts(done: Sequence[WarmingReport]) -> int:
    return max(each.warmed + each.failed for each in done)


def _summary(pods: int, done: Sequence[WarmingReport]) -> Manifest:
    summary: Manifest = {"pods": pods, "warmed": len(done)}
    if done:
        failures = {failure for each in done for failure in each.failures}
        listed = sorted(failures, key=_order)[:MOST_FAILURES]
        summary |= {
            "prompts": _prompts(done),
            "failed": max(each.failed for each in done),
            "tokens": max(each.tokens for each in done),
            "failures": [_failure(failure) for failure in listed],
        }
    return summary


def _order(failure: PromptFailure) -> tuple[str, str, str, int]:
    index = int(failure.index) if failure.index else -1
    return failure.config_map, failure.claim, failure.key, index


def _failure(failure: PromptFailure) -> Manifest:
    told = {
        "configMap": failure.config_map,
        "persistentVolumeClaim": failure.claim,
        "key": failure.key,
    }
    shown: Manifest = {name: value for name, value in told.items() if value}
    return shown | ({"index": int(failure.index)} if failure.index else {})

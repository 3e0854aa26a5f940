"""One run for one cluster: observe, plan, execute, and decide when to look again."""

import logging
import time
from collections.abc import Callable

from sglang_controllers.manifest import ObjectKey, key_of
from sglang_controllers.names import KIND
from sglang_controllers.plan import Plan
from sglang_controllers.snapshot import Snapshot, WriteError
from sglang_operator.cache import Key
from sglang_operator.execute import Executor, NotLeadingError, Outcome
from sglang_operator.metrics import Metrics
from sglang_operator.observe import Observer
from sglang_operator.queue import WorkQueue

log = logging.getLogger(__name__)

Planner = Callable[[Snapshot], Plan]

RESTLESS = 20
"""Runs in a row that all wrote. Beyond, each waits longer: whether the fault is in our plan or
somebody undoes what we write, it must not become a load on the API server.
"""

CALM_S = 0.1
LONGEST_CALM_S = 30.0


class Reconciler:
    """Holds what outlasts a run: the refusals that the next plan must know of."""

    def __init__(
        self,
        queue: WorkQueue[Key],
        observer: Observer,
        plan: Planner,
        executor: Executor,
        metrics: Metrics,
    ) -> None:
        self._queue = queue
        self._observer = observer
        self._plan = plan
        self._executor = executor
        self._metrics = metrics
        self._errors: dict[Key, dict[ObjectKey, WriteError]] = {}
        self._streaks: dict[Key, int] = {}

    async def work_on(self, key: Key) -> None:
        """One run, whatever happens in it: a fault costs this cluster a delay, no other one."""
        started = time.monotonic()
        extra = {"namespace": key.namespace, "cluster": key.name}
        try:
            outcome = await self._run(key)
        except NotLeadingError:
            result = "not_leading"
            self._queue.add(key)
        except Exception:
            delay_s = self._queue.retry(key)
            result = "error"
            log.exception("reconcile failed, again in %.1f s", delay_s, extra=extra)
        else:
            result = outcome
        self._metrics.reconciled(result, time.monotonic() - started)

    async def _run(self, key: Key) -> str:
        snapshot = await self._observer.observe(key, self._refusals(key))
        if snapshot is None:
            self._errors.pop(key, None)
            self._streaks.pop(key, None)
            self._queue.succeeded(key)
            return "gone"
        plan = self._plan(snapshot)
        outcome = await self._executor.carry_out(key, snapshot.cluster, plan)
        self._remember(key, plan, outcome)
        if outcome.failure is None and not outcome.stale:
            self._observer.told(key, snapshot.drains)
        if plan.ask:
            await self._observer.ask(key)
        if plan.again_after_s is not None:
            self._queue.add_after(key, plan.again_after_s)
        return self._look_again(key, outcome)

    def _refusals(self, key: Key) -> dict[ObjectKey, WriteError]:
        """What the planner is told: refusals of the status itself could not be shown in it."""
        errors = self._errors.get(key, {})
        return {target: error for target, error in errors.items() if target.kind != KIND}

    def _remember(self, key: Key, plan: Plan, outcome: Outcome) -> None:
        """Keep a refusal until its object is written or no longer planned."""
        planned = {
            *(key_of(manifest) for manifest in plan.create),
            *(key_of(apply.manifest) for apply in plan.apply),
            *(ObjectKey(d.kind, d.name) for d in plan.delete),
        }
        kept = {
            target: error
            for target, error in self._errors.get(key, {}).items()
            if target in planned and target not in outcome.written
        }
        before = self._errors.pop(key, {})
        for target, error in outcome.errors.items():
            if before.get(target) != error:  # told once, not with every retry
                what = f"{target.kind}/{target.name}"
                extra = {"namespace": key.namespace, "cluster": key.name, "object": what}
                log.warning("%s refused: %s", error.verb, error.message, extra=extra)
        if kept or outcome.errors:
            self._errors[key] = kept | outcome.errors

    def _look_again(self, key: Key, outcome: Outcome) -> str:
        """Queue the key for what this run leaves open. The answer is the outcome's name."""
        extra = {"namespace": key.namespace, "cluster": key.name}
        if outcome.failure is not None:
            delay_s = self._queue.retry(key)
            log.warning("%s; again in %.1f s", outcome.failure, delay_s, extra=extra)
            return "failed"
        if outcome.errors:
            self._queue.retry(key)
            return "refused"
        self._queue.succeeded(key)
        if not outcome.written and not outcome.stale:
            self._streaks.pop(key, None)
            return "unchanged"
        # Our own writes are in the cache already and come with no event: the next step is ours
        # to ask for.
        self._streaks[key] = self._streaks.get(key, 0) + 1
        if self._streaks[key] == 2 * RESTLESS:
            log.error("%d runs in a row wrote something", self._streaks[key], extra=extra)
        if outcome.stale:  # what was learnt may be undone by the next listing: do not wait long
            self._queue.add_after(key, min(self.calm_s(key), CALM_S))
            return "stale"
        self._queue.add_after(key, self.calm_s(key))
        return "written"

    def calm_s(self, key: Key) -> float:
        """Seconds to wait before a run that an event or a write asks for; usually none."""
        excess = self._streaks.get(key, 0) - RESTLESS
        if excess < 0:
            return 0.0
        return min(CALM_S * 2.0 ** min(excess, 16), LONGEST_CALM_S)

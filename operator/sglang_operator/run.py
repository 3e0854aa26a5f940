"""The running operator: its parts wired together, supervised, and stopped in order."""

import asyncio
import logging
import random
import signal
from contextlib import suppress

from sglang_controllers.manifest import Manifest
from sglang_controllers.planner import plan as default_plan
from sglang_controllers.reports import CUT
from sglang_operator.audit import Audit
from sglang_operator.cache import Cache, Key, key_of, version_of
from sglang_operator.clock import Clock
from sglang_operator.execute import AfterWrite, Around, Executor, no_hook
from sglang_operator.health import HealthServer
from sglang_operator.kube import Kube, load_configuration
from sglang_operator.leader import KubeLease, Leader
from sglang_operator.metrics import Metrics
from sglang_operator.observe import Observer
from sglang_operator.polls import Polls
from sglang_operator.queue import QueueClosedError, WorkQueue
from sglang_operator.reconcile import Planner, Reconciler
from sglang_operator.resources import PODS
from sglang_operator.settings import Settings
from sglang_operator.sources import Sources
from sglang_operator.watch import Watches

log = logging.getLogger(__name__)

DRAIN_S = 15.0
"""For running reconciles at a stop: with what else a stop takes, below kubelet's 30 s."""

STUCK_S = 300.0
"""A reconcile this long can only hang: every one of its requests is bounded at 30 s."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class PartEndedError(Exception):
    """A part that should run as long as the process has ended."""


class PortTakenError(Exception):
    """Nothing can listen on the health port."""


class Operator:
    """One operator. `run` lasts until `stop` is called or a part breaks, which it raises."""

    def __init__(
        self,
        settings: Settings,
        *,
        plan: Planner = default_plan,
        after_write: AfterWrite = no_hook,
        handle_signals: bool = False,
    ) -> None:
        self.settings = settings
        self.health_port = 0
        self._plan = plan
        self._after_write = after_write
        self._handle_signals = handle_signals
        self._stopping = asyncio.Event()
        self._busy: dict[Key, float] = {}
        self._clock = Clock()
        self._idle = asyncio.Event()
        self._idle.set()

    def stop(self) -> None:
        """Take no more work, finish what runs, hand over."""
        self._stopping.set()

    async def run(self) -> None:
        configuration = await load_configuration(self.settings.kubeconfig)
        async with Kube(configuration) as kube:
            self._wire(kube)
            try:
                self.health_port = await self._listen()
                await self._supervise()
            finally:
                await self._health.stop()

    @property
    def synced(self) -> bool:
        """Whether the cache holds everything that was there at the start."""
        return self._audit.synced.is_set()

    async def _listen(self) -> int:
        wanted = self.settings.health_port
        try:
            port = await self._health.start(wanted)
        except OSError as error:
            raise PortTakenError(f"cannot listen on port {wanted}: {error.strerror}") from error
        log.info("health and metrics on port %d", port)
        return port

    def _wire(self, kube: Kube) -> None:
        settings = self.settings
        self.cache = Cache()
        self._audit = Audit(kube, self.cache, settings, self._clock, self._enqueue)
        self.polls = Polls(self.cache, self._clock, self._enqueue)
        self.metrics = Metrics(
            self.cache, lambda: len(self.queue), self._audit.ages, self.polls.reports
        )
        self.queue: WorkQueue[Key] = WorkQueue(
            self._clock.monotonic, random.random, waited=self.metrics.queue_wait.observe
        )
        self._leader = Leader(
            KubeLease(kube, settings.lease_namespace, settings.lease_name),
            settings.identity,
            self._clock,
            changed=self._leading_changed,
        )
        executor = Executor(
            kube,
            self.cache,
            Around(self._may_write, self.metrics.wrote, self._after_write),
            self._clock,
            settings.identity,
        )
        self._sources = Sources(kube, settings.scopes, self._enqueue)
        self._observer = Observer(
            kube, self.cache, self._clock, self.polls, self._sources, settings.images
        )
        self._reconciler = Reconciler(
            self.queue, self._observer, self._plan, executor, self.metrics
        )
        self._watches = Watches(
            kube,
            settings.namespaces,
            self._seen,
            self.metrics.watch_restarts.inc,
        )
        self._health = HealthServer(self._unhealthy, self._unready, self.metrics)

    async def _supervise(self) -> None:
        """Run all parts until a stop; the end of any part before that is a fault."""
        if self._handle_signals:
            for number in SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
        parts = {
            asyncio.create_task(self._watches.run(), name="watches"),
            asyncio.create_task(self._audit.run(), name="audit"),
            asyncio.create_task(self.polls.run(), name="polls"),
            asyncio.create_task(self._sources.run(), name="prompt sources"),
        }
        if self.settings.leader_election:
            parts.add(asyncio.create_task(self._leader.run(), name="leader election"))
        else:
            self._leading_changed(True)
        workers = {
            asyncio.create_task(self._work(), name=f"worker {number}")
            for number in range(self.settings.workers)
        }
        stop = asyncio.create_task(self._stopping.wait(), name="stop")
        everything: set[asyncio.Task[object]] = {stop, *parts, *workers}
        try:
            done, _ = await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
            if stop in done:
                await self._drain()
        finally:
            await _cancelled(everything)
        if self.settings.leader_election:
            await self._leader.release()
        if stop not in done:
            ended = done.pop()
            raise PartEndedError(f"{ended.get_name()} ended") from ended.exception()

    async def _drain(self) -> None:
        """Let running reconciles end, within bounds."""
        log.info("stopping: %d reconciles to finish", len(self._busy))
        self.queue.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._idle.wait()

    async def _work(self) -> None:
        """Work on one cluster after the other, while leading."""
        await self._audit.synced.wait()
        while True:
            if self.settings.leader_election:
                await self._leader.wait()
            try:
                key = await self.queue.get()
            except QueueClosedError:
                return
            self._busy[key] = self._clock.monotonic()
            self._idle.clear()
            try:
                await self._reconciler.work_on(key)
            finally:
                del self._busy[key]
                self.queue.done(key)
                if not self._busy:
                    self._idle.set()

    def _may_write(self) -> bool:
        return not self.settings.leader_election or self._leader.holds()

    def _leading_changed(self, leading: bool) -> None:
        self.metrics.leading.set(leading)
        if leading:
            for key, _ in self.cache.clusters():
                self.queue.add(key)

    def _enqueue(self, key: Key) -> None:
        """Queue a cluster. Where another process leads, it waits there for a change of leaders.

        To drop it would lose what is seen in a short lapse of the lease: when the same process
        holds it again, nothing is queued anew.
        """
        self.queue.add_after(key, self._reconciler.calm_s(key))

    def _seen(self, item: Manifest, gone: bool) -> None:
        self._audit.delivered(item)
        changed = self.cache.remove(item, version_of(item)) if gone else self.cache.put(item)
        if item["kind"] == PODS.kind:
            self._saw_pod(item)
        for key in changed:
            self._enqueue(key)

    def _saw_pod(self, pod: Manifest) -> None:
        self.polls.seen(pod)
        drain, key = self.metrics.saw_pod(pod), key_of(pod)
        if drain and key and drain.outcome == CUT:
            self._observer.cut(key, drain)
            self._enqueue(key)

    def _unhealthy(self) -> list[str]:
        now = self._clock.monotonic()
        stalled = [f"watch has stalled: {name}" for name in self._audit.stalled()]
        stuck = [
            f"reconcile of {key.namespace}/{key.name} hangs"
            for key, since in self._busy.items()
            if now - since > STUCK_S
        ]
        return stalled + stuck

    def _unready(self) -> list[str]:
        return [] if self.synced else ["not everything has been listed yet"]


async def _cancelled(tasks: set[asyncio.Task[object]]) -> None:
    """Cancel tasks and wait for their ends, whatever these are."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

"""Leader election by a Lease: at most one process writes at a time.

The clock of another machine is never believed: a lease has ended when its record has not changed
for its duration by our own clock. The holder stops believing in its lease well before that.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from sglang_controllers.manifest import Manifest
from sglang_operator.clock import Clock
from sglang_operator.kube import ApiError, Kube, KubeError
from sglang_operator.resources import LEASES

log = logging.getLogger(__name__)


class LeaseStore(Protocol):
    """One Lease object. `write` fails with ApiError 409 where it changed since it was read."""

    async def read(self) -> Manifest | None: ...

    async def write(self, lease: Manifest) -> Manifest: ...


class KubeLease:
    """The Lease in the API server."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self._kube = kube
        self._metadata = {"namespace": namespace, "name": name}

    async def read(self) -> Manifest | None:
        try:
            return await self._kube.get(LEASES, self._metadata["namespace"], self._metadata["name"])
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def write(self, lease: Manifest) -> Manifest:
        whole = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **lease}
        whole["metadata"] = {**self._metadata, **lease.get("metadata", {})}
        if "resourceVersion" in whole["metadata"]:
            return await self._kube.replace(LEASES, whole)
        return await self._kube.create(LEASES, whole)


@dataclass(frozen=True, slots=True)
class Timing:
    """Another process leads within `lease_s + renew_s` and a request of a leader's death.

    `trust_s` is how long after the start of its last renewal a leader writes: less than `lease_s`,
    so that nobody else has begun.
    """

    lease_s: float = 10.0
    trust_s: float = 7.0
    renew_s: float = 2.0
    retry_s: float = 0.5
    request_s: float = 2.0


class Leader:
    """`changed` is told whenever this process begins or ceases to lead."""

    def __init__(
        self,
        store: LeaseStore,
        identity: str,
        clock: Clock,
        timing: Timing | None = None,
        changed: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._identity = identity
        self._clock = clock
        self._timing = timing or Timing()
        self._changed = changed
        self._lease: Manifest | None = None
        self._seen_at = 0.0
        self._trusted_until = float("-inf")
        self._leading = asyncio.Event()

    def holds(self) -> bool:
        """Whether nobody else can be leading at this moment."""
        return self._clock.monotonic() < self._trusted_until

    async def wait(self) -> None:
        """Until this process leads."""
        while not self.holds():
            self._leading.clear()
            await self._leading.wait()

    async def run(self) -> None:
        """Get the lease, keep it, and try again whenever it is lost. Never ends by itself."""
        led = False
        while True:
            pause_s = self._timing.renew_s
            try:
                async with asyncio.timeout(self._timing.request_s):
                    await self._step()
            except (KubeError, TimeoutError) as error:
                log.warning("lease not renewed: %s", str(error) or "no answer in time")
                pause_s = self._timing.retry_s
            if led != self.holds():
                led = self.holds()
                self._tell(led)
            if led:  # also where nothing has changed: `wait` may have looked in a gap
                self._leading.set()
            await asyncio.sleep(pause_s)

    def _tell(self, leading: bool) -> None:
        if leading:
            log.info("lease acquired: %s leads", self._identity)
        else:
            log.error("lease lost: %s stops writing", self._identity)
        self._changed(leading)

    async def release(self) -> None:
        """Hand the lease over at once instead of letting it run out."""
        if not self.holds() or self._lease is None:
            return
        self._trusted_until = float("-inf")
        self._changed(False)
        spec = {**self._lease["spec"], "holderIdentity": "", "renewTime": self._time()}
        with suppress(KubeError, TimeoutError):  # then it runs out: slower, and just as safe
            async with asyncio.timeout(self._timing.request_s):
                await self._store.write(self._next(spec))
                log.info("lease released")

    async def _step(self) -> None:
        """Look at the lease, and write it where it is ours or free."""
        started = self._clock.monotonic()
        if not self.holds():
            await self._look(started)
        if not self._free():
            self._trusted_until = float("-inf")
            return
        try:
            self._lease = await self._store.write(self._next(self._claim(self._spec)))
        except ApiError as error:
            if error.status != 409:
                raise
            # Somebody else wrote it. If it is still ours, the next step claims it again.
            await self._look(started)
            if self._spec.get("holderIdentity") != self._identity:
                self._trusted_until = float("-inf")
            return
        self._seen_at = self._clock.monotonic()
        self._trusted_until = started + self._timing.trust_s

    async def _look(self, started: float) -> None:
        """Read the lease. Its time runs anew whenever it has changed."""
        live = await self._store.read()
        if live is None or _version(live) != _version(self._lease):
            self._lease, self._seen_at = live, started

    @property
    def _spec(self) -> Manifest:
        return self._lease["spec"] if self._lease else {}

    def _free(self) -> bool:
        """Whether the lease is ours, nobody's, or has run out."""
        holder = self._spec.get("holderIdentity") or ""
        duration_s = self._spec.get("leaseDurationSeconds") or self._timing.lease_s
        return (
            holder in ("", self._identity) or self._clock.monotonic() - self._seen_at >= duration_s
        )

    def _claim(self, spec: Manifest) -> Manifest:
        ours = spec.get("holderIdentity") == self._identity
        now = self._time()
        return {
            **spec,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._timing.lease_s),
            "renewTime": now,
            "acquireTime": spec.get("acquireTime", now) if ours else now,
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (0 if ours else 1),
        }

    def _next(self, spec: Manifest) -> Manifest:
        version = _version(self._lease)
        return {"metadata": {"resourceVersion": version} if version else {}, "spec": spec}

    def _time(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _version(lease: Manifest | None) -> str | None:
    """The version that a write must be based on, None: there is no lease yet."""
    return lease["metadata"]["resourceVersion"] if lease else None

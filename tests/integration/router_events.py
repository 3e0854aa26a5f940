"""What happens to engines' pods, by chance, and how far a router's list is behind."""

import asyncio
import random
import time
from dataclasses import dataclass, field

from tests.integration.router_process import Engine, Pods, Router

SAMPLE_S = 0.05

NEVER = float("inf")


@dataclass
class Place:
    """An engine's address and the pod that has it, if one does."""

    engine: Engine
    pod: str = ""
    ready: bool = False
    deleted: bool = False
    """It is still there, with a deletionTimestamp."""

    pod_since_s: float = 0.0
    """When its pod began, or ceased, to be one that requests may go to."""

    process_since_s: float = 0.0
    """When its process was killed or started."""

    listed_since_s: float = NEVER
    """When it was seen in the router's list, where it still is."""

    @property
    def pod_serves(self) -> bool:
        return bool(self.pod) and self.ready and not self.deleted


@dataclass
class Worst:
    """The longest times, in seconds."""

    stale_s: float = 0.0
    """That a worker was listed at a stretch whose pod is not ready, is about to go or has gone."""

    dead_s: float = 0.0
    """That one was listed whose process is dead while its pod says Ready."""

    missing_s: float = 0.0
    """That an engine was not listed that serves."""


@dataclass
class Cluster:
    pods: Pods
    engines: list[Engine]
    places: list[Place] = field(init=False)
    made: int = 0
    worst: Worst = field(default_factory=Worst)

    def __post_init__(self) -> None:
        self.places = [Place(engine) for engine in self.engines]

    def serving(self) -> list[str]:
        return [p.engine.url for p in self.places if p.pod_serves and p.engine.alive]

    async def create(self, place: Place) -> None:
        """Ready once its process listens, as a kubelet's probe sees to it."""
        await self.start(place)
        self.made += 1
        name = f"pod-{self.made}"
        await self.pods.create(name, place.engine.address)
        place.pod, place.ready, place.deleted = name, True, False

    async def set_ready(self, place: Place, ready: bool) -> None:
        await self.pods.set_ready(place.pod, place.engine.address, ready)
        place.ready = ready

    async def delete(self, place: Place) -> None:
        await self.pods.delete(place.pod)
        place.deleted = True

    async def let_go(self, place: Place) -> None:
        await self.pods.let_go(place.pod)
        place.pod = ""

    async def start(self, place: Place) -> None:
        if not place.engine.alive:
            place.engine.start()
            await place.engine.until_listening()
            place.process_since_s = time.monotonic()

    def kill(self, place: Place) -> None:
        place.engine.kill()
        place.process_since_s = time.monotonic()

    async def replace(self, place: Place) -> None:
        """At once, by a pod that gets the same address."""
        self.kill(place)
        await self.delete(place)
        place.pod_since_s = time.monotonic()
        await self.let_go(place)
        await self.create(place)


def possible(place: Place) -> list[str]:
    """A kubelet starts a process in a pod that stays, and finds a pod ready whose process answers."""
    if not place.pod:
        return ["created"]
    alive = place.engine.alive
    killed = ["killed"] if alive else []
    if place.deleted:
        return ["gone", *killed]
    change = "not ready" if place.ready else "ready"
    if alive:
        return [change, "deleted", "replaced", *killed]
    return ["back", "deleted", "replaced", *(["not ready"] if place.ready else [])]


async def random_event(cluster: Cluster, chance: random.Random) -> str:
    """Its name."""
    place = chance.choice(cluster.places)
    event = chance.choice(possible(place))
    served = place.pod_serves
    match event:
        case "created":
            await cluster.create(place)
        case "ready" | "not ready":
            await cluster.set_ready(place, event == "ready")
        case "deleted":
            await cluster.delete(place)
        case "gone":
            cluster.kill(place)
            await cluster.let_go(place)
        case "replaced":
            await cluster.replace(place)
        case "killed":
            cluster.kill(place)
        case "back":
            await cluster.start(place)
    if place.pod_serves != served or event == "replaced":
        place.pod_since_s = time.monotonic()
    return event


async def compared(cluster: Cluster, router: Router) -> None:
    """Ask the router over and over, and note the worst, until cancelled."""
    while True:
        asked_s = time.monotonic()
        listed = await router.healthy()
        for place in cluster.places:
            _note(cluster.worst, place, place.engine.url in listed, asked_s)
        await asyncio.sleep(SAMPLE_S)


def _note(worst: Worst, place: Place, listed: bool, asked_s: float) -> None:
    place.listed_since_s = min(place.listed_since_s, asked_s) if listed else NEVER
    pod_s = asked_s - place.pod_since_s
    both_s = min(pod_s, asked_s - place.process_since_s)
    if listed and not place.pod_serves:
        # Also one that smg had begun to take in before, and lists only now.
        worst.stale_s = max(worst.stale_s, min(pod_s, asked_s - place.listed_since_s))
    elif listed and not place.engine.alive:
        worst.dead_s = max(worst.dead_s, both_s)
    elif not listed and place.pod_serves and place.engine.alive:
        worst.missing_s = max(worst.missing_s, both_s)

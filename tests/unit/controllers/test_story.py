"""Any story, in any order, with crashes and stale reads, ends where an undisturbed one would."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sglang_controllers.manifest import ObjectKey
from sglang_controllers.plan import Plan
from sglang_controllers.planner import plan
from sglang_controllers.pods import is_alive
from sglang_controllers.snapshot import Snapshot
from tests.builders import a_cluster
from tests.simulation import BROKEN, GOOD, World

SPECS: tuple[dict[str, Any], ...] = (
    {},
    {"cache": {"eviction": {"policy": "lfu"}}},
    {"cache": {"pageSize": 16}},
    {"engine": {"image": "registry.example/engine:2"}},
    {"podTemplate": {"metadata": {"labels": {"team": "blue"}}}},
)
BAD_SPEC = {"engine": {"extraArgs": {"tp-size": 2}}}


class Story(RuleBasedStateMachine):
    """Users, other controllers and faults take turns."""

    @initialize(replicas=st.integers(0, 3), slots=st.integers(1, 5))
    def start(self, replicas: int, slots: int) -> None:
        self.world = World(a_cluster(replicas=replicas), slots)
        self.broken: set[str] = set()
        self.world.behaviour = lambda revision: BROKEN if revision in self.broken else GOOD
        self.stale: Snapshot | None = None

    @rule(spec=st.sampled_from((*SPECS, BAD_SPEC)))
    def change_spec(self, spec: dict[str, Any]) -> None:
        kept = {k: v for k, v in self.world.cluster["spec"].items() if k in ("replicas", "model")}
        self.world.cluster["spec"] = kept
        self.world.change(**spec)

    @rule(replicas=st.integers(0, 4))
    def scale(self, replicas: int) -> None:
        self.world.change(replicas=replicas)

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.world.change(paused=paused)

    @rule(slots=st.integers(1, 6))
    def gain_or_lose_gpus(self, slots: int) -> None:
        self.world.slots = slots

    @rule()
    def break_the_newest_revision(self) -> None:
        revision = self.world.cluster.get("status", {}).get("currentRevision")
        if revision:
            self.broken.add(revision)

    @rule()
    def repair_everything(self) -> None:
        self.broken.clear()

    @rule(writes=st.integers(0, 5))
    def reconcile_and_crash(self, writes: int) -> None:
        self.world.reconcile(stop_after=writes)

    @rule()
    def reconcile(self) -> None:
        self.world.reconcile()

    @rule()
    def live(self) -> None:
        self.world.live()

    @rule()
    def keep_a_snapshot(self) -> None:
        self.stale = self.world.snapshot()

    @precondition(lambda self: self.stale is not None)
    @rule()
    def reconcile_from_a_stale_snapshot(self) -> None:
        assert self.stale is not None
        self.world.execute(plan(self.stale))
        self.stale = None

    @rule(data=st.data())
    def somebody_deletes_a_child(self, data: st.DataObject) -> None:
        keys = sorted(self.world.children)
        if keys:
            del self.world.children[data.draw(st.sampled_from(keys))]

    @rule()
    def somebody_removes_a_label(self) -> None:
        live = self.world.children.get(ObjectKey("Service", "chat"))
        if live:
            live["metadata"]["labels"].pop("app.kubernetes.io/name", None)

    @invariant()
    def status_never_says_ready_of_what_is_not(self) -> None:
        ready = self.world.condition("Ready")
        status = self.world.cluster.get("status", {})
        if not ready or ready["status"] != "True":
            return
        (role,) = status["roles"]
        assert role["ready"] == role["desired"] == role["current"] == role["updated"]
        assert self.world.condition("Stalled") is None
        assert self.world.condition("Reconciling") is None

    def teardown(self) -> None:
        """Once nobody disturbs it any more, the cluster reaches the newest spec and rests."""
        if not hasattr(self, "world"):
            return
        self.broken.clear()
        replicas = self.world.cluster["spec"]["replicas"]
        self.world.slots = max(self.world.slots, replicas, 1)
        self.world.change(paused=False)
        if self.world.cluster["spec"].get("engine", {}).get("extraArgs"):
            del self.world.cluster["spec"]["engine"]
        self.world.turns(60)
        assert self.world.ready() == replicas
        assert len([p for p in self.world.engines if is_alive(p)]) == replicas
        assert len(self.world.revisions()) == (1 if replicas else 0)
        assert self.world.condition("Ready")["status"] == "True"  # type: ignore[index]
        assert self.world.reconcile() == Plan()


Story.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestStory = Story.TestCase

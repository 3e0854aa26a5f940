"""What the executor makes of the API server's answers."""

import asyncio
from typing import Any

import pytest

from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.names import CLUSTER_LABEL, KIND
from sglang_controllers.plan import Apply, Delete, EventRecord, Plan
from sglang_controllers.snapshot import WriteError
from sglang_operator.cache import Cache, Key
from sglang_operator.clock import Clock
from sglang_operator.execute import Around, Executor, NotLeadingError, Outcome, Write
from sglang_operator.kube import ApiError, NetworkError
from tests.builders import NOW, a_cluster
from tests.unit.operator.api import ScriptedApi

CHAT = Key("team", "chat")
SERVICE = ObjectKey("Service", "chat")
SERVICES = "/api/v1/namespaces/team/services"
ACCOUNTS = "/api/v1/namespaces/team/serviceaccounts"
STATUS = "/apis/sglang.dev/v1alpha1/namespaces/team/sglangclusters/chat/status"
EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"

FORBIDDEN = ApiError(403, "Forbidden", "no")
EXISTS = ApiError(409, "AlreadyExists", "there is one")
CONFLICT = ApiError(409, "Conflict", "changed meanwhile")
CERTAIN_ANSWERS = [
    ApiError(400, "BadRequest", "no"),
    FORBIDDEN,
    ApiError(422, "Invalid", "no"),
]
PASSING_ANSWERS = [
    NetworkError("no answer"),
    ApiError(500, "InternalError", "no"),
    ApiError(503, "ServiceUnavailable", "no"),
    ApiError(429, "TooManyRequests", "no"),
    ApiError(401, "Unauthorized", "no"),
]


def a_manifest(kind: str = "Service", name: str = "chat") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {CLUSTER_LABEL: "chat"}},
    }


def live(item: Manifest, uid: str = "s1", version: int = 5, owner: str = "uid-1") -> Manifest:
    more = {
        "namespace": "team",
        "uid": uid,
        "resourceVersion": str(version),
        "ownerReferences": [{"uid": owner, "controller": True}],
    }
    return {**item, "metadata": {**item["metadata"], **more}}


class Bench:
    """An executor, and what it did."""

    def __init__(self, **around: Any) -> None:
        self.api = ScriptedApi()
        self.cache = Cache()
        self.written: list[str] = []
        self.counted: list[tuple[str, str]] = []

        async def after_write(write: Write) -> None:
            self.written.append(f"{write.verb} {write.kind}/{write.name}")

        given: dict[str, Any] = {
            "may_write": lambda: True,
            "count": lambda write, outcome: self.counted.append((str(write.verb), outcome)),
            "after_write": after_write,
        }
        clock = Clock(lambda: 0.0, lambda: NOW)
        around_all = Around(**{**given, **around})
        self.executor = Executor(self.api.kube(), self.cache, around_all, clock, "me")

    def carry_out(self, plan: Plan) -> Outcome:
        return asyncio.run(self.executor.carry_out(CHAT, a_cluster(), plan))

    def cached(self, key: ObjectKey = SERVICE) -> Manifest | None:
        return self.cache.entry(CHAT).children.get(key)


def test_writes_come_in_the_order_of_the_plan() -> None:
    bench = Bench()
    created, applied = a_manifest("ServiceAccount", "chat-engine"), a_manifest()
    status = live(a_cluster(), "uid-1")
    bench.api.on("POST", ACCOUNTS, live(created))
    bench.api.on("PATCH", f"{SERVICES}/chat", live(applied))
    bench.api.on("DELETE", "/api/v1/namespaces/team/configmaps/old", {"kind": "Status"})
    bench.api.on("PATCH", STATUS, status)
    bench.api.on("POST", EVENTS, {})

    outcome = bench.carry_out(
        Plan(
            create=(created,),
            apply=(Apply(applied, "s1", complete=False),),
            delete=(Delete("ConfigMap", "old", "c1"),),
            status={"observedGeneration": 1},
            events=(EventRecord("Normal", "Serving", "it serves"),),
        )
    )

    assert bench.written == [
        "create ServiceAccount/chat-engine",
        "apply Service/chat",
        "delete ConfigMap/old",
        "status SGLangCluster/chat",
        "event SGLangCluster/chat",
    ]
    assert outcome.errors == {}
    assert {outcome for _, outcome in bench.counted} == {"ok"}


def test_what_was_written_is_in_the_cache_at_once() -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, live(a_manifest(), version=9))

    bench.carry_out(Plan(create=(a_manifest(),)))

    cached = bench.cached()
    assert cached is not None
    assert cached["metadata"]["resourceVersion"] == "9"


def test_an_apply_and_a_status_are_bound_to_the_object_that_was_planned_for() -> None:
    bench = Bench()
    bench.api.on("PATCH", f"{SERVICES}/chat", live(a_manifest()))
    bench.api.on("PATCH", STATUS, live(a_cluster(), "uid-1"))

    bench.carry_out(Plan(apply=(Apply(a_manifest(), "s1", complete=False),), status={}))

    assert [body["metadata"]["uid"] for body in bench.api.bodies] == ["s1", "uid-1"]
    assert all(query["force"] == "true" for query in bench.api.queries)


@pytest.mark.parametrize("aside", [(), ("chat-warming-0",)])
def test_a_refusal_of_what_is_aside_holds_up_no_deletion(aside: tuple[str, ...]) -> None:
    bench = Bench()
    bench.api.on("POST", "/api/v1/namespaces/team/configmaps", FORBIDDEN)
    bench.api.on("DELETE", "/api/v1/namespaces/team/configmaps/old", {"kind": "Status"})
    slot, old = a_manifest("ConfigMap", "chat-warming-0"), Delete("ConfigMap", "old", "c1")

    outcome = bench.carry_out(Plan(create=(slot,), delete=(old,), aside=aside))

    assert list(outcome.errors) == [ObjectKey("ConfigMap", "chat-warming-0")]
    assert bench.written == (["delete ConfigMap/old"] if aside else [])


def test_a_deletion_is_bound_to_the_object_and_goes_on_in_the_background() -> None:
    bench = Bench()
    bench.api.on("DELETE", f"{SERVICES}/chat", {"kind": "Status"})
    bench.cache.put(live(a_manifest()))

    bench.carry_out(Plan(delete=(Delete("Service", "chat", "s1"),)))

    assert bench.api.bodies[0]["preconditions"] == {"uid": "s1"}
    assert bench.api.bodies[0]["propagationPolicy"] == "Background"
    assert bench.cached() is None


def test_an_object_that_a_finalizer_keeps_stays_in_the_cache() -> None:
    bench = Bench()
    kept = live(a_manifest(), version=6)
    kept["metadata"] |= {"finalizers": ["x"], "deletionTimestamp": "2026-11-29T12:00:00Z"}
    bench.api.on("DELETE", f"{SERVICES}/chat", kept)
    bench.cache.put(live(a_manifest()))

    bench.carry_out(Plan(delete=(Delete("Service", "chat", "s1"),)))

    cached = bench.cached()
    assert cached is not None
    assert "deletionTimestamp" in cached["metadata"]


@pytest.mark.parametrize("answer", CERTAIN_ANSWERS, ids=lambda e: e.reason)
def test_a_refusal_is_recorded_and_the_rest_goes_on(answer: ApiError) -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, answer)
    bench.api.on("POST", ACCOUNTS, live(a_manifest("ServiceAccount")))
    bench.api.on("PATCH", STATUS, live(a_cluster(), "uid-1"))

    outcome = bench.carry_out(Plan(create=(a_manifest(), a_manifest("ServiceAccount")), status={}))

    told = WriteError("create", answer.status, answer.reason, "no")
    assert outcome.errors == {SERVICE: told}
    assert bench.written == ["create ServiceAccount/chat", "status SGLangCluster/chat"]
    assert ("create", "refused") in bench.counted


def test_in_a_namespace_that_goes_away_nothing_is_told() -> None:
    bench = Bench()
    said = "unable to create new content in namespace team because it is being terminated"
    bench.api.on("POST", SERVICES, ApiError(403, "Forbidden", said))

    outcome = bench.carry_out(Plan(create=(a_manifest(),), status={}))

    assert outcome.stale
    assert outcome.errors == {}
    assert bench.written == []


def test_nothing_is_deleted_while_something_could_not_be_written() -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, FORBIDDEN)

    bench.carry_out(Plan(create=(a_manifest(),), delete=(Delete("ConfigMap", "old", "c1"),)))

    assert [method for method, _ in bench.api.requests] == ["POST"]


@pytest.mark.parametrize("answer", PASSING_ANSWERS, ids=str)
def test_what_may_pass_by_itself_ends_the_run_and_is_nobodys_fault(answer: Exception) -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, answer)

    outcome = bench.carry_out(Plan(create=(a_manifest(), a_manifest("ServiceAccount")), status={}))

    assert outcome.failure is answer
    assert outcome.errors == {}
    assert len(bench.api.requests) == 1
    assert bench.counted == [("create", "failed")]


def test_an_object_of_ours_that_the_cache_missed_is_taken_into_it() -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, EXISTS)
    bench.api.on("GET", f"{SERVICES}/chat", live(a_manifest(), version=8))

    outcome = bench.carry_out(Plan(create=(a_manifest(),)))

    assert outcome.stale
    assert outcome.errors == {}
    assert bench.cached() is not None


def test_ours_without_its_label_is_found_though_watches_say_it_is_gone() -> None:
    bench = Bench()
    bare = live(a_manifest(), version=8)
    bare["metadata"]["labels"] = {}
    bench.cache.put(live(a_manifest()))
    bench.cache.remove(bare, 8)
    bench.api.on("POST", SERVICES, EXISTS)
    bench.api.on("GET", f"{SERVICES}/chat", bare)

    bench.carry_out(Plan(create=(a_manifest(),)))

    assert bench.cached() is not None


def test_a_foreign_object_in_the_way_is_recorded_and_not_cached() -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, EXISTS)
    bench.api.on("GET", f"{SERVICES}/chat", live(a_manifest(), owner="somebody"))

    outcome = bench.carry_out(Plan(create=(a_manifest(),)))

    assert outcome.errors[SERVICE].reason == "AlreadyExists"
    assert not outcome.stale
    assert bench.cached() is None


def test_an_object_in_the_way_that_is_gone_again_needs_another_try_only() -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, EXISTS)

    outcome = bench.carry_out(Plan(create=(a_manifest(),)))

    assert outcome.stale
    assert outcome.errors == {}


@pytest.mark.parametrize(
    ("method", "plan"),
    [
        ("PATCH", Plan(apply=(Apply(a_manifest(), "s1", complete=False),))),
        ("DELETE", Plan(delete=(Delete("Service", "chat", "s1"),))),
    ],
    ids=["apply", "delete"],
)
def test_an_object_that_another_one_replaced_makes_the_cache_learn_the_new_one(
    method: str, plan: Plan
) -> None:
    bench = Bench()
    bench.cache.put(live(a_manifest(), "s1"))
    bench.api.on(method, f"{SERVICES}/chat", CONFLICT)
    bench.api.on("GET", f"{SERVICES}/chat", live(a_manifest(), "s2", version=9))

    outcome = bench.carry_out(plan)

    cached = bench.cached()
    assert outcome.stale
    assert outcome.errors == {}
    assert cached is not None
    assert cached["metadata"]["uid"] == "s2"


def test_a_status_for_a_cluster_that_is_gone_forgets_it() -> None:
    bench = Bench()
    bench.cache.put(live(a_cluster(), "uid-1"))
    bench.api.on("PATCH", STATUS, ApiError(404, "NotFound", "none"))

    outcome = bench.carry_out(Plan(status={}, events=(EventRecord("Normal", "A", "b"),)))

    assert bench.cache.entry(CHAT).cluster is None
    assert outcome.errors == {}
    assert ("POST", EVENTS) not in bench.api.requests


def test_a_complete_apply_first_makes_posted_fields_applied_ones() -> None:
    bench = Bench()
    posted = {"manager": "sglang-operator", "operation": "Update", "fieldsV1": {"f:a": {}}}
    found = live(a_manifest())
    found["metadata"]["managedFields"] = [posted]
    bench.api.on("GET", f"{SERVICES}/chat", found)
    bench.api.on("PATCH", f"{SERVICES}/chat", live(a_manifest(), version=6))

    bench.carry_out(Plan(apply=(Apply(a_manifest(), "s1", complete=True),)))

    assert bench.written == ["own Service/chat", "apply Service/chat"]
    assert bench.api.bodies[1][0]["value"] == [{**posted, "operation": "Apply"}]


def test_an_apply_in_part_leaves_the_owners_of_fields_as_they_are() -> None:
    bench = Bench()
    bench.api.on("PATCH", f"{SERVICES}/chat", live(a_manifest()))

    bench.carry_out(Plan(apply=(Apply(a_manifest(), "s1", complete=False),)))

    assert bench.api.requests == [("PATCH", f"{SERVICES}/chat")]


def test_a_race_for_the_owners_list_is_run_again() -> None:
    bench = Bench()
    posted = {"manager": "sglang-operator", "operation": "Update", "fieldsV1": {"f:a": {}}}
    found = live(a_manifest())
    found["metadata"]["managedFields"] = [posted]
    bench.api.on("GET", f"{SERVICES}/chat", found)
    answer = live(a_manifest(), version=6)
    bench.api.on("PATCH", f"{SERVICES}/chat", CONFLICT, answer, answer)

    outcome = bench.carry_out(Plan(apply=(Apply(a_manifest(), "s1", complete=True),)))

    assert outcome.errors == {}
    assert bench.written == ["own Service/chat", "apply Service/chat"]


@pytest.mark.parametrize(
    ("version", "refused"), [(6, False), (5, True)], ids=["ports differed", "another cause"]
)
def test_a_refused_service_is_told_unless_its_ports_were_the_cause(
    version: int, refused: bool
) -> None:
    bench = Bench()
    bench.cache.put(live(a_manifest()))
    bench.api.on("GET", f"{SERVICES}/chat", live(a_manifest()))
    invalid = ApiError(422, "Invalid", "no")
    bench.api.on("PATCH", f"{SERVICES}/chat", invalid, live(a_manifest(), version=version))
    wanted = {**a_manifest(), "spec": {"ports": [{"name": "http", "port": 8000}]}}

    outcome = bench.carry_out(Plan(apply=(Apply(wanted, "s1", complete=True),)))

    assert (SERVICE in outcome.errors) is refused
    assert bench.written == ([] if refused else ["apply Service/chat"])


def test_a_read_that_is_forbidden_is_recorded_too() -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, EXISTS)
    bench.api.on("GET", f"{SERVICES}/chat", FORBIDDEN)

    outcome = bench.carry_out(Plan(create=(a_manifest(),)))

    assert outcome.errors == {SERVICE: WriteError("get", 403, "Forbidden", "no")}
    assert outcome.failure is None


def test_a_plan_made_on_an_outdated_view_tells_nobody_anything() -> None:
    bench = Bench()
    bench.api.on("POST", SERVICES, EXISTS)
    bench.api.on("PATCH", STATUS, live(a_cluster(), "uid-1"))
    bench.api.on("POST", EVENTS, {})

    record = EventRecord("Normal", "A", "b")
    outcome = bench.carry_out(Plan(create=(a_manifest(),), status={}, events=(record,)))

    assert outcome.stale
    assert bench.written == []


def test_an_event_that_is_refused_fails_nothing() -> None:
    bench = Bench()
    bench.api.on("PATCH", STATUS, live(a_cluster(), "uid-1"))
    bench.api.on("POST", EVENTS, FORBIDDEN)

    outcome = bench.carry_out(Plan(status={}, events=(EventRecord("Normal", "A", "b"),)))

    assert outcome.errors == {}
    assert outcome.failure is None


def test_no_event_tells_a_transition_that_the_status_does_not_show() -> None:
    bench = Bench()
    bench.api.on("PATCH", STATUS, ApiError(422, "Invalid", "no"))

    outcome = bench.carry_out(Plan(status={}, events=(EventRecord("Normal", "A", "b"),)))

    assert ("POST", EVENTS) not in bench.api.requests
    assert list(outcome.errors) == [ObjectKey(KIND, "chat")]


def test_writes_stop_at_once_when_the_lease_is_lost() -> None:
    leading = True
    bench = Bench(may_write=lambda: leading)
    bench.api.on("POST", SERVICES, live(a_manifest()))

    def lose(_: object) -> None:
        nonlocal leading
        leading = False

    bench.api.when_asked = lose

    with pytest.raises(NotLeadingError):
        bench.carry_out(Plan(create=(a_manifest(), a_manifest("ServiceAccount"))))

    assert len(bench.api.requests) == 1


def test_a_long_message_is_cut_to_what_an_event_can_hold() -> None:
    bench = Bench()
    bench.api.on("PATCH", STATUS, live(a_cluster(), "uid-1"))
    bench.api.on("POST", EVENTS, {})

    bench.carry_out(Plan(status={}, events=(EventRecord("Warning", "A", "ä" * 2000),)))

    note = bench.api.bodies[-1]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("ä ...")

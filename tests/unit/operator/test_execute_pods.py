"""Writes beside the cluster's own objects: the agents' token, marks on pods, what is told once."""

from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.plan import Apply, EventRecord, Plan
from sglang_controllers.resources.subject import Subject
from sglang_controllers.resources.token_secret import token_secret
from sglang_operator.kube import ApiError
from tests.unit.operator.test_execute import CHAT, EVENTS, EXISTS, Bench

SECRETS = "/api/v1/namespaces/team/secrets"
POD = "/api/v1/namespaces/team/pods/chat-1"
MARK: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "chat-1", "annotations": {"cost": "1"}},
}


def test_a_token_is_random_and_stays_in_no_cache() -> None:
    bench = Bench()
    bench.api.on("POST", SECRETS, {})

    for _ in range(2):
        outcome = bench.carry_out(Plan(create=(token_secret(Subject("team", "chat", "uid-1")),)))
        assert outcome.errors == {}

    tokens = {body["stringData"]["token"] for body in bench.api.bodies}
    assert len(tokens) == 2
    assert all(len(token) >= 40 for token in tokens)
    assert bench.cache.entry(CHAT).children == {}


def test_a_token_that_is_there_is_neither_an_error_nor_progress() -> None:
    bench = Bench()
    bench.api.on("POST", SECRETS, EXISTS)

    outcome = bench.carry_out(Plan(create=(token_secret(Subject("team", "chat", "uid-1")),)))

    assert (outcome.errors, outcome.written, outcome.stale) == ({}, set(), False)


def test_a_pod_that_has_gone_before_it_was_marked_is_no_fault() -> None:
    bench = Bench()
    bench.api.on("PATCH", POD, ApiError(409, "Conflict", "uid mismatch"))

    outcome = bench.carry_out(Plan(apply=(Apply(MARK, "p1", complete=False),)))

    assert outcome.errors == {}
    assert outcome.stale


def test_what_is_told_once_has_one_name_and_is_not_complained_of_again() -> None:
    bench = Bench()
    bench.api.on("POST", EVENTS, EXISTS)
    record = EventRecord("Warning", "DrainCut", "cut", once="uid-9")

    for _ in range(2):
        bench.carry_out(Plan(events=(record,)))

    first, second = (body["metadata"]["name"] for body in bench.api.bodies)
    assert first == second
    assert ObjectKey("Event", first) not in bench.cache.entry(CHAT).children

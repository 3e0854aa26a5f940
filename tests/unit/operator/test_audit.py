"""Which watches are believed, and what a listing puts right."""

import asyncio
from typing import Any

import pytest

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import CLUSTER_LABEL, KIND
from sglang_operator.audit import Audit, Deliveries
from sglang_operator.cache import Cache, Key
from sglang_operator.clock import Clock
from sglang_operator.kube import NetworkError
from sglang_operator.resources import WATCHED
from sglang_operator.settings import Settings
from tests.unit.operator.api import ScriptedApi


def test_a_version_that_two_audits_saw_and_the_watch_did_not_bring_is_a_stall() -> None:
    watch = Deliveries(started=0.0)
    watch.check({"a": 1}, now=10.0)
    assert not watch.stalled

    watch.check({"a": 1}, now=20.0)

    assert watch.stalled
    assert watch.proven_at == 10.0


def test_a_version_that_was_brought_in_between_is_proof_of_life() -> None:
    watch = Deliveries(started=0.0)
    watch.check({"a": 1}, now=10.0)
    watch.delivered("a", 1)

    watch.check({"a": 2}, now=20.0)

    assert not watch.stalled
    assert watch.proven_at == 20.0


def test_a_newer_version_than_owed_is_as_good() -> None:
    watch = Deliveries(started=0.0)
    watch.check({"a": 1}, now=10.0)
    watch.delivered("a", 3)
    watch.check({"a": 3}, now=20.0)

    assert not watch.stalled


def test_an_older_version_than_owed_is_not() -> None:
    watch = Deliveries(started=0.0)
    watch.delivered("a", 1)
    watch.check({"a": 2}, now=10.0)
    watch.delivered("a", 1)
    watch.check({"a": 2}, now=20.0)

    assert watch.stalled


def test_a_stall_ends_with_the_delivery_not_with_the_next_audit() -> None:
    watch = Deliveries(started=0.0)
    watch.check({"a": 1}, now=10.0)
    watch.check({"a": 1}, now=20.0)

    watch.delivered("a", 1)

    assert not watch.stalled


def test_what_is_gone_by_the_next_audit_proves_nothing() -> None:
    watch = Deliveries(started=0.0)
    watch.check({"a": 1}, now=10.0)
    watch.check({}, now=20.0)

    assert not watch.stalled


def test_a_quiet_watch_is_alive() -> None:
    watch = Deliveries(started=0.0)
    watch.delivered("a", 1)
    for now in (10.0, 20.0, 30.0):
        watch.check({"a": 1}, now=now)

    assert not watch.stalled
    assert watch.proven_at == 30.0


def a_service(name: str = "chat", version: int = 5, namespace: str = "team") -> Manifest:
    metadata = {"name": name, "uid": f"{namespace}-{name}", "resourceVersion": str(version)}
    labels = {CLUSTER_LABEL: "chat"}
    return {"metadata": {**metadata, "namespace": namespace, "labels": labels}}


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.api = ScriptedApi()
        self.cache = Cache()
        self.changed: list[Key] = []
        given = Settings(lease_namespace="x", identity="me", **settings)
        self.audit = Audit(
            self.api.kube(), self.cache, given, Clock(lambda: 0.0), self.changed.append
        )
        for resource in WATCHED:
            for scope in given.scopes:
                self.api.on("GET", resource.path(scope), a_list(100))

    def once(self) -> bool:
        return asyncio.run(self.audit.once())


def a_list(version: int, *items: Manifest, more: str = "") -> Manifest:
    metadata = {"resourceVersion": str(version), "continue": more}
    return {"metadata": metadata, "items": list(items)}


def test_an_audit_lists_ours_by_label_and_page_by_page() -> None:
    bench = Bench()
    first, second = a_list(9, a_service("a"), more="next"), a_list(9, a_service("b"))
    bench.api.on("GET", "/api/v1/services", first, second)

    assert bench.once()

    queries = [
        query
        for (_, path), query in zip(bench.api.requests, bench.api.queries, strict=True)
        if path == "/api/v1/services"
    ]
    page = {"labelSelector": CLUSTER_LABEL, "limit": "500"}
    assert queries == [page, {**page, "continue": "next"}]
    names = {key.name for key in bench.cache.entry(Key("team", "chat")).children}
    assert names == {"a", "b"}


def test_clusters_are_listed_whatever_their_labels() -> None:
    bench = Bench()
    bench.once()

    by_path = dict(zip([p for _, p in bench.api.requests], bench.api.queries, strict=True))
    assert "labelSelector" not in by_path["/apis/sglang.dev/v1alpha1/sglangclusters"]


def test_a_cluster_whose_known_state_was_wrong_is_told_and_others_are_not() -> None:
    bench = Bench()
    bench.api.on("GET", "/api/v1/services", a_list(9, a_service()))
    bench.once()
    bench.once()

    assert bench.changed == [Key("team", "chat")]


def test_a_listing_that_fails_leaves_the_cache_alone() -> None:
    bench = Bench()
    bench.api.on("GET", "/api/v1/services", a_list(9, a_service()), NetworkError("no answer"))
    assert bench.once()

    assert not bench.once()
    assert bench.cache.entry(Key("team", "chat")).children


def test_a_stalled_watch_is_named_by_kind_and_namespace() -> None:
    bench = Bench(namespaces=("team", "other"))
    bench.api.on("GET", "/api/v1/namespaces/team/services", a_list(9, a_service()))
    bench.once()
    bench.once()

    assert bench.audit.stalled() == ["Service in team"]

    bench.audit.delivered({**a_service(), "kind": "Service"})

    assert bench.audit.stalled() == []


def test_each_watch_has_an_age() -> None:
    ages = Bench(namespaces=("team",)).audit.ages()

    assert set(ages) == {(resource.kind, "team") for resource in WATCHED}
    assert (KIND, "team") in ages


@pytest.mark.parametrize("fails", [False, True])
def test_the_cache_is_synced_after_one_whole_audit(fails: bool) -> None:
    bench = Bench()
    if fails:
        bench.api.on("GET", "/api/v1/pods", NetworkError("no answer"))

    async def a_while() -> bool:
        task = asyncio.create_task(bench.audit.run())
        for _ in range(50):
            await asyncio.sleep(0)
        task.cancel()
        return bench.audit.synced.is_set()

    assert asyncio.run(a_while()) is not fails


def test_a_stall_and_its_end_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(namespaces=("team",))
    bench.api.on("GET", "/api/v1/namespaces/team/services", a_list(9, a_service()))
    for _ in range(4):
        bench.once()
    bench.audit.delivered({**a_service(), "kind": "Service"})
    bench.once()
    bench.once()

    told = [record.getMessage() for record in caplog.records]
    assert told == ["watches have stalled: Service in team", "watches have stalled: none any more"]


def test_what_is_delivered_while_a_listing_is_on_its_way_is_not_owed_later() -> None:
    watch = Deliveries(0.0)
    watch.delivered("a", 5)
    watch.check({}, now=10.0)

    watch.check({"a": 5}, now=20.0)
    watch.check({"a": 5}, now=30.0)

    assert not watch.stalled

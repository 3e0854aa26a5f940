"""The cache keeps the newest of what it is told, in whatever order."""

from typing import Any

import pytest

from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.names import CLUSTER_LABEL, KIND
from sglang_operator.cache import LAST_APPLIED, Cache, Key, slim

CHAT = Key("team", "chat")
OTHER = Key("team", "other")


def an_object(
    kind: str = "Service", name: str = "chat", uid: str = "u1", version: int = 10, **more: Any
) -> Manifest:
    labels = {} if kind == KIND else {CLUSTER_LABEL: "chat"}
    metadata = {"namespace": "team", "name": name, "uid": uid, "labels": labels}
    return {"kind": kind, "metadata": {**metadata, "resourceVersion": str(version)}, **more}


def labelled(item: Manifest, cluster: str | None) -> Manifest:
    labels = {CLUSTER_LABEL: cluster} if cluster else {}
    return {**item, "metadata": {**item["metadata"], "labels": labels}}


def version_in(cache: Cache, key: Key = CHAT) -> str | None:
    child = cache.entry(key).children.get(ObjectKey("Service", "chat"))
    return child["metadata"]["resourceVersion"] if child else None


def test_a_new_object_changes_its_cluster() -> None:
    cache = Cache()

    assert cache.put(an_object()) == {CHAT}
    assert version_in(cache) == "10"


@pytest.mark.parametrize(("version", "changed"), [(9, set()), (10, set()), (11, {CHAT})])
def test_only_a_newer_version_counts(version: int, changed: set[Key]) -> None:
    cache = Cache()
    cache.put(an_object(version=10))

    assert cache.put(an_object(version=version)) == changed
    assert version_in(cache) == str(max(version, 10))


def test_versions_are_compared_as_numbers() -> None:
    cache = Cache()
    cache.put(an_object(version=99))

    assert cache.put(an_object(version=100)) == {CHAT}


def test_a_late_event_of_an_earlier_object_of_that_name_is_ignored() -> None:
    cache = Cache()
    cache.put(an_object(uid="new", version=20))

    assert cache.put(an_object(uid="old", version=15)) == set()
    assert cache.remove(an_object(uid="old", version=16)) == set()
    assert version_in(cache) == "20"


def test_what_we_deleted_does_not_come_back_with_a_late_event() -> None:
    cache = Cache()
    cache.put(an_object(version=10))
    assert cache.remove(an_object(version=10)) == {CHAT}

    assert cache.put(an_object(version=12)) == set()
    assert version_in(cache) is None


def test_what_left_a_watch_comes_back_in_a_later_version() -> None:
    cache = Cache()
    cache.put(an_object(version=10))
    cache.remove(an_object(version=11), 11)  # its label was taken away

    assert cache.put(an_object(version=10)) == set()
    assert cache.put(an_object(version=12)) == {CHAT}


def test_what_was_just_read_is_there_whatever_was_heard() -> None:
    cache = Cache()
    cache.put(an_object(version=10))
    cache.remove(an_object(version=10))

    changed = cache.put(labelled(an_object(version=11), None), CHAT, just_read=True)

    assert changed == {CHAT}
    assert version_in(cache) == "11"


def test_an_object_that_changes_its_label_moves_and_changes_both_clusters() -> None:
    cache = Cache()
    cache.put(an_object(version=10))

    assert cache.put(labelled(an_object(version=11), "other")) == {CHAT, OTHER}
    assert version_in(cache) is None
    assert version_in(cache, OTHER) == "11"


@pytest.mark.parametrize("label", ["other", None])
def test_an_object_whose_label_somebody_changed_stays_with_its_controller(
    label: str | None,
) -> None:
    owner = {"kind": KIND, "name": "chat", "controller": True}
    meddled = labelled(an_object(version=11), label)
    meddled["metadata"]["ownerReferences"] = [{"kind": "Node", "name": "other"}, owner]
    cache = Cache()
    cache.put(an_object(version=10))

    assert cache.put(meddled) == {CHAT}
    assert version_in(cache) == "11"


def test_an_object_without_our_label_is_forgotten() -> None:
    cache = Cache()
    cache.put(an_object(version=10))

    assert cache.put(labelled(an_object(version=11), None)) == {CHAT}
    assert version_in(cache) is None


def test_a_listing_repairs_what_watches_lost() -> None:
    cache = Cache()
    cache.put(an_object(name="kept", uid="u1", version=10))
    cache.put(an_object(name="lost", uid="u2", version=11))
    cache.put(an_object("ConfigMap", name="of another kind", uid="u3", version=11))
    listed = [an_object(name="kept", uid="u1", version=12), an_object(name="new", uid="u4")]

    assert cache.repair("Service", None, listed, version=20) == {CHAT}
    names = {key.name for key in cache.entry(CHAT).children}
    assert names == {"kept", "new", "of another kind"}


def test_a_listing_that_changes_nothing_changes_no_cluster() -> None:
    cache = Cache()
    cache.put(an_object())

    assert cache.repair("Service", None, [an_object()], version=20) == set()


def test_what_was_made_after_a_listing_survives_it() -> None:
    cache = Cache()
    cache.put(an_object(version=30))

    assert cache.repair("Service", None, [], version=20) == set()
    assert version_in(cache) == "30"


def test_a_listing_of_one_namespace_says_nothing_of_others() -> None:
    cache = Cache()
    cache.put(an_object())

    assert cache.repair("Service", "elsewhere", [], version=20) == set()
    assert cache.repair("Service", "team", [], version=20) == {CHAT}


def test_an_entry_is_a_copy() -> None:
    cache = Cache()
    before = cache.entry(CHAT)
    cache.put(an_object())

    assert before.children == {}


def test_clusters_children_and_pods_are_told_apart() -> None:
    cache = Cache()
    cache.put(an_object(KIND, uid="c"))
    cache.put(an_object("Pod", name="chat-1", uid="p"))
    cache.put(an_object())

    entry = cache.entry(CHAT)

    assert entry.cluster is not None
    assert list(entry.pods) == ["chat-1"]
    assert list(entry.children) == [ObjectKey("Service", "chat")]
    assert [key for key, _ in cache.clusters()] == [CHAT]


def test_nothing_is_left_of_a_cluster_that_is_gone() -> None:
    cache = Cache()
    items = [an_object(KIND, uid="c"), an_object("Pod", uid="p"), an_object()]
    for item in items:
        cache.put(item)
    for item in items:
        cache.remove(item)

    assert cache.entry(CHAT).cluster is None
    assert vars(cache)["_entries"] == {}
    assert vars(cache)["_objects"] == {}


def test_bulky_parts_are_dropped() -> None:
    service = an_object(spec={"ports": []})
    service["metadata"]["managedFields"] = [{"manager": "x"}]
    service["metadata"]["annotations"] = {LAST_APPLIED: "{}", "kept": "yes"}

    slimmed = slim(service)

    assert "managedFields" not in slimmed["metadata"]
    assert slimmed["metadata"]["annotations"] == {"kept": "yes"}
    assert slimmed["spec"] == {"ports": []}
    assert "managedFields" in service["metadata"], "the original is left alone"


def test_a_config_map_keeps_digests_in_place_of_its_content() -> None:
    kept = slim(an_object("ConfigMap", data={"a": "x" * 1000}, binaryData={"b": "AAEC"}))

    assert "data" not in kept
    assert "binaryData" not in kept
    assert kept["digests"].keys() == {"a", "b"}


def test_of_a_config_map_that_cannot_change_metadata_is_enough() -> None:
    kept = slim(an_object("ConfigMap", data={"arguments": "x" * 1000}, immutable=True))

    assert "data" not in kept
    assert "digests" not in kept


def test_a_pod_keeps_what_explains_it() -> None:
    container = {"name": "engine", "image": "i", "resources": {"limits": {"a": 1}}, "env": [1]}
    pod = an_object("Pod", spec={"nodeName": "n", "containers": [container], "volumes": [1]})
    pod["status"] = {"phase": "Pending"}

    slimmed = slim(pod)

    assert slimmed["status"] == {"phase": "Pending"}
    assert slimmed["spec"]["nodeName"] == "n"
    assert "volumes" not in slimmed["spec"]
    kept = {"name": "engine", "image": "i", "resources": {"limits": {"a": 1}}}
    assert slimmed["spec"]["containers"] == [kept]

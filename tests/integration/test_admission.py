"""A real API server takes the CRD, takes good manifests, and refuses bad ones in useful words."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import kubernetes.client as kube
import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.config import new_client_from_config

from sglang_controllers import names
from sglang_controllers.api import InvalidSpec, parse_spec
from sglang_controllers.api.schema import crd, structural_schema
from sglang_controllers.api.spec import ClusterSpec
from tests.integration.control_plane import ControlPlane
from tests.unit.controllers.api.cases import (
    BREAKS_A_RULE,
    BREAKS_A_TYPE,
    GOOD,
    MODEL,
    Bad,
    a_spec,
    engine,
)

Manifest = dict[str, Any]

NAMESPACE = "default"
CRD = f"{names.PLURAL}.{names.GROUP}"
SERVED_WITHIN_S = 30

JUNK: list[Any] = [None, 0, -1, 2, "", "x", "2", True, [], {}, 1.5, 10**12, "a" * 600, [{}], ["x"]]
"""Values that some fields take and others refuse. No object with a field: only the API server
knows unknown fields."""

CACHE = os.environ.get("SGLANG_OPERATOR_CACHE") or Path.home() / ".cache" / "sglang-operator"
KUBECTL = shutil.which("kubectl", path=f"{CACHE}/kind/bin:{os.environ['PATH']}") or "kubectl"


class Api:
    """The API server as these tests use it: nothing that is created stays."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.objects = kube.CustomObjectsApi(client)
        self.definitions: Any = kube.ApiextensionsV1Api(client)

    def create(self, spec: Manifest, name: str = "chat", *, dry_run: bool = True) -> Manifest:
        """What the API server stores for a spec."""
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        stored: Any = self.objects.create_namespaced_custom_object(
            names.GROUP,
            names.VERSION,
            NAMESPACE,
            names.PLURAL,
            body,
            dry_run="All" if dry_run else None,
            field_validation="Strict",
        )
        return dict(stored)

    def refusal(self, spec: Manifest, name: str = "chat") -> str:
        """What `kubectl apply` would print about a spec that is refused."""
        with pytest.raises(ApiException) as refused:
            self.create(spec, name)
        return str(json.loads(refused.value.body or "{}")["message"])

    def delete(self, name: str) -> None:
        self.objects.delete_namespaced_custom_object(
            names.GROUP, names.VERSION, NAMESPACE, names.PLURAL, name
        )

    def set_status(self, name: str, status: Manifest) -> None:
        self.objects.patch_namespaced_custom_object_status(
            names.GROUP, names.VERSION, NAMESPACE, names.PLURAL, name, {"status": status}
        )

    def scale(self, name: str, replicas: int | None = None) -> Manifest:
        """The /scale subresource, after setting its replicas when they are given."""
        place = (names.GROUP, names.VERSION, NAMESPACE, names.PLURAL, name)
        if replicas is not None:
            self.objects.patch_namespaced_custom_object_scale(
                *place, {"spec": {"replicas": replicas}}
            )
        scale: Any = self.objects.get_namespaced_custom_object_scale(*place)
        return dict(scale)


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[Api]:
    """The API server, with the CRD installed and served."""
    connect: Any = new_client_from_config  # it has no types
    with connect(str(control_plane.kubeconfig)) as client:
        api = Api(client)
        install(api)
        yield api


def install(api: Api) -> None:
    try:
        api.definitions.create_custom_resource_definition(crd())
    except ApiException as refused:
        if refused.reason != "Conflict":
            raise
    deadline = time.monotonic() + SERVED_WITHIN_S
    while True:
        try:
            api.create(a_spec())
        except ApiException as missing:
            if missing.status != 404 or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def stored(api: Api) -> Iterator[Manifest]:
    """A cluster that is really there, for the length of a test."""
    yield api.create(a_spec(replicas=2), "stored", dry_run=False)
    api.delete("stored")


def kubectl(control_plane: ControlPlane, *arguments: str) -> str:
    done = subprocess.run(
        [KUBECTL, f"--kubeconfig={control_plane.kubeconfig}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def explain(api: Api, control_plane: ControlPlane) -> Callable[[str], str]:
    """`kubectl explain`, its answer on one line. A new CRD's documentation comes a little later."""
    del api  # has installed the CRD
    deadline = time.monotonic() + SERVED_WITHIN_S
    while True:
        try:
            kubectl(control_plane, "explain", "sglc")
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return lambda path: " ".join(kubectl(control_plane, "explain", path).split())


def test_the_crd_is_established_and_its_names_are_accepted(api: Api) -> None:
    conditions = api.definitions.read_custom_resource_definition(CRD).status.conditions

    assert {c.type: c.status for c in conditions} == {
        "Established": "True",
        "NamesAccepted": "True",
    }


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
def test_good_specs_are_stored_as_they_are(api: Api, spec: Manifest) -> None:
    stored = api.create(spec)["spec"]

    assert stored == {"replicas": 1, **spec}
    assert parse_spec(stored) == parse_spec(spec)


@pytest.mark.parametrize("bad", BREAKS_A_RULE.values(), ids=BREAKS_A_RULE.keys())
def test_a_broken_rule_is_refused_with_field_and_fix(api: Api, bad: Bad) -> None:
    answer = api.refusal(bad.spec)

    assert bad.field in answer
    assert bad.says in answer


@pytest.mark.parametrize("bad", BREAKS_A_TYPE.values(), ids=BREAKS_A_TYPE.keys())
def test_a_wrong_type_or_value_is_refused_with_its_field(api: Api, bad: Bad) -> None:
    answer = api.refusal(bad.spec)

    assert bad.field in answer
    assert bad.says in answer


@pytest.mark.parametrize("bad", BREAKS_A_RULE.values(), ids=BREAKS_A_RULE.keys())
def test_both_sides_say_the_same_about_a_broken_rule(api: Api, bad: Bad) -> None:
    with pytest.raises(InvalidSpec) as refused:
        parse_spec(bad.spec)
    rule_and_fix = refused.value.problems[0].partition("; ")[2]

    assert rule_and_fix in api.refusal(bad.spec)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (a_spec(replica=2), "spec.replica"),
        (a_spec(model={**MODEL, "sorce": "x"}), "spec.model.sorce"),
        (engine(paralelism={"tensor": 2}), "spec.engine.paralelism"),
        (a_spec(cache={"eviction": {"polcy": "lru"}}), "spec.cache.eviction.polcy"),
        (engine(env=[{"name": "A", "valu": "1"}]), "spec.engine.env[0].valu"),
    ],
)
def test_an_unknown_field_is_refused_by_name(api: Api, spec: Manifest, field: str) -> None:
    assert f'unknown field "{field}"' in api.refusal(spec)


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk)[:20])
def test_both_sides_agree_about_junk_in_every_field(api: Api, junk: Any) -> None:
    disagreements = []
    paths = set(field_paths(structural_schema(ClusterSpec)))
    for path in sorted(paths):
        spec = with_value(a_spec(), path, junk, paths)
        if taken_by_the_api_server(api, spec) is not taken_by_the_models(spec):
            disagreements.append(path)

    assert disagreements == []


@pytest.mark.parametrize("name", ["chat", "c", "a-1", "x" * 52])
def test_names_that_fit_into_every_childs_name_are_taken(api: Api, name: str) -> None:
    assert api.create(a_spec(), name)["metadata"]["name"] == name


@pytest.mark.parametrize("name", ["1chat", "a.b", "x" * 53])
def test_other_names_are_refused_with_the_rule(api: Api, name: str) -> None:
    answer = api.refusal(a_spec(), name)

    assert "metadata.name: Invalid value: a name has at most 52 characters" in answer
    assert 'write for example "chat-1"' in answer


def test_one_replica_is_the_only_default(api: Api) -> None:
    assert api.create(a_spec())["spec"] == {"replicas": 1, **a_spec()}


def test_scale_reads_and_sets_the_replicas(api: Api, stored: Manifest) -> None:
    name = stored["metadata"]["name"]
    api.set_status(name, {"replicas": 2, "selector": "sglang.dev/cluster=stored"})

    assert api.scale(name)["status"] == {"replicas": 2, "selector": "sglang.dev/cluster=stored"}
    assert api.scale(name, replicas=5)["spec"]["replicas"] == 5


def test_status_is_a_subresource(api: Api, stored: Manifest) -> None:
    name = stored["metadata"]["name"]
    api.set_status(name, STATUS)

    found: Any = api.objects.get_namespaced_custom_object(
        names.GROUP, names.VERSION, NAMESPACE, names.PLURAL, name
    )
    assert found["status"] == STATUS
    assert found["metadata"]["generation"] == stored["metadata"]["generation"]


def test_get_shows_how_a_cluster_is(
    api: Api, stored: Manifest, control_plane: ControlPlane
) -> None:
    api.set_status(stored["metadata"]["name"], STATUS)

    head, row = kubectl(control_plane, "get", "sglc", "stored", "-o", "wide").splitlines()

    assert head.split() == [
        *("NAME", "READY", "REASON", "DESIRED", "CURRENT", "UP-TO-DATE", "SERVING"),
        *("REVISION", "MODEL", "AGE"),
    ]
    assert row.split()[:-1] == [
        *("stored", "False", "WaitingForGPU", "2", "3", "1", "2", "7f3a"),
        MODEL["source"],
    ]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("sglc", ["A model served by SGLang engines", "spec <Object> -required-"]),
        ("sglc.spec.cache.eviction", ["Which cached prefixes make room", "enum: lru, lfu, slru"]),
        ("sglc.spec.model.source", ["oci://IMAGE", "pvc://CLAIM/PATH", "image:///PATH"]),
        ("sglc.spec.engine.startupTimeout", ["Default `30m`"]),
        ("sglc.spec.speculative.ngram", ["needs no draft model", "numDraftTokens <integer>"]),
    ],
)
def test_explain_tells_what_a_field_does(
    explain: Callable[[str], str], path: str, words: list[str]
) -> None:
    text = explain(path)

    assert [word for word in words if word not in text] == []


def taken_by_the_api_server(api: Api, spec: Manifest) -> bool:
    try:
        api.create(spec)
    except ApiException as refused:
        if refused.status not in (400, 422):
            raise
        return False
    return True


def taken_by_the_models(spec: Manifest) -> bool:
    try:
        parse_spec(spec)
    except InvalidSpec:
        return False
    return True


def field_paths(schema: Manifest, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every field below `schema`; `0` is a list's first item, `cpu` a map's."""
    inner = dict(schema.get("properties", {}))
    for key, name in (("items", "0"), ("additionalProperties", "cpu")):
        if key in schema:
            inner[name] = schema[key]
    for name, below in inner.items():
        yield (*path, name)
        yield from field_paths(below, (*path, name))


def with_value(
    spec: Manifest,
    path: tuple[str, ...],
    value: Any,
    known: Collection[tuple[str, ...]],
    above: tuple[str, ...] = (),
) -> Manifest:
    """`spec` with `value` at `path`; items that it makes on the way are named, if they have names.

    `known` are the paths of all fields, `above` is where `spec` is among them.
    """
    if path[0] == "0":
        raise ValueError("a spec is no list")
    changed = dict(spec)
    inner: Any = value
    if len(path) > 1 and path[1] == "0":
        item = (*above, *path[:2])
        named = {"name": "A"} if (*item, "name") in known else {}
        inner = [value if len(path) == 2 else with_value(named, path[2:], value, known, item)]
    elif len(path) > 1:
        below = (*above, path[0])
        inner = with_value(changed.get(path[0], {}), path[1:], value, known, below)
    return changed | {path[0]: inner}


STATUS: Manifest = {
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-11-29T12:00:00Z",
            "reason": "WaitingForGPU",
            "message": "unified: 1 of 2 engines pending. Add a node or lower spec.replicas.",
        }
    ],
    "replicas": 3,
    "selector": "sglang.dev/cluster=stored",
    "currentRevision": "7f3a",
    "roles": [
        {
            "name": "unified",
            "revision": "b21c",
            "desired": 2,
            "current": 3,
            "updated": 1,
            "ready": 2,
        }
    ],
}

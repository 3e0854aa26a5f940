"""The user's pod template over the operator's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_controllers.podtemplate import merged_template, template_problems

BASE: dict[str, Any] = {
    "metadata": {"labels": {"a": "1"}},
    "spec": {
        "containers": [
            {
                "name": "engine",
                "env": [{"name": "HOME", "value": "/cache"}],
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }
        ],
        "volumes": [{"name": "cache", "emptyDir": {}}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    },
}


def merged(**spec: Any) -> dict[str, Any]:
    return dict(merged_template(BASE, {"spec": spec})["spec"])


def test_an_empty_template_changes_nothing() -> None:
    assert merged_template(BASE, {}) == BASE


def test_a_sidecar_is_added_beside_the_engine() -> None:
    names = [c["name"] for c in merged(containers=[{"name": "log", "image": "x"}])["containers"]]

    assert names == ["engine", "log"]


def test_the_engine_is_merged_by_name() -> None:
    (engine,) = merged(containers=[{"name": "engine", "env": [{"name": "X", "value": "1"}]}])[
        "containers"
    ]

    assert [e["name"] for e in engine["env"]] == ["HOME", "X"]


def test_a_volume_replaces_its_namesake_whole() -> None:
    claim = {"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}

    assert merged(volumes=[claim])["volumes"] == [claim]


def test_tolerations_are_added() -> None:
    assert len(merged(tolerations=[{"key": "spot"}])["tolerations"]) == 2


def test_null_removes_a_field() -> None:
    assert "volumes" not in merged(volumes=None)


def test_unknown_fields_are_kept() -> None:
    assert merged(futureField={"a": [1]})["futureField"] == {"a": [1]}


@pytest.mark.parametrize(
    ("overlay", "says"),
    [
        ({"spec": {"containers": [{"name": "engine", "args": []}]}}, "extraArgs"),
        ({"spec": {"containers": [{"name": "engine", "image": "x"}]}}, "spec.engine.image"),
        ({"spec": {"containers": [{"image": "x"}]}}, "containers[0]: name is missing"),
        ({"spec": {"containers": {"name": "x"}}}, "must be a list of objects"),
        ({"spec": []}, "must be an object"),
        ({"nodeSelector": {"no": "such"}}, "write it under spec.podTemplate.spec"),
        ({"metadata": {"labels": {"env": [1]}}}, "labels[env]: got [1]; must be text"),
        ({"metadata": {"annotations": {"n": 5}}}, "annotations[n]: got 5; must be text"),
        ({"metadata": {"labels": {"sglang.dev/cluster": "x"}}}, "sglang.dev/cluster"),
    ],
)
def test_what_cannot_be_taken_over_is_told(overlay: dict[str, Any], says: str) -> None:
    (problem,) = template_problems(overlay)

    assert problem.startswith("spec.podTemplate")
    assert says in problem


@pytest.mark.parametrize("name", ["download", "agent"])
@pytest.mark.parametrize("field", ["image", "command", "args"])
def test_what_download_and_agent_run_is_the_operators(name: str, field: str) -> None:
    container = {"name": name, field: "x"}

    (problem,) = template_problems({"spec": {"initContainers": [container]}})

    assert problem.startswith(f"spec.podTemplate.spec.initContainers[{name}].{field}: ")


def test_annotations_may_have_any_name() -> None:
    assert template_problems({"metadata": {"annotations": {"spec": "x", "ports": "y"}}}) == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "labels", "containers", "env", "name", "ports", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec"]), json_values))
def test_any_template_is_either_merged_or_refused(overlay: dict[str, Any]) -> None:
    if not template_problems(overlay):
        merged_template(BASE, overlay)

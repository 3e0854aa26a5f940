"""Bad input is refused by kubectl apply, in words that name the field."""

from typing import Any

import pytest

from e2e.tests.kube import Manifest, Namespace, a_cluster


def changed(**spec: Any) -> Manifest:
    return a_cluster("bad", **spec)


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (changed(cahce={}), 'unknown field "spec.cahce"'),
        (changed(replicas="two"), "spec.replicas"),
        (changed(cache={"eviction": {"policy": "fifo"}}), 'supported values: "lru", "lfu"'),
        (changed(model={"source": "s3://bucket/model"}), "oci://"),
        (changed(engine={"startupTimeout": "30"}), "spec.engine.startupTimeout"),
        (a_cluster("x" * 60), "at most 52"),
    ],
    ids=["unknown field", "wrong type", "wrong value", "unknown scheme", "no unit", "long name"],
)
def test_bad_input_is_refused(namespace: Namespace, manifest: Manifest, says: str) -> None:
    assert says in namespace.refused(manifest)

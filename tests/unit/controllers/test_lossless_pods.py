"""Properties of pods that keep requests from being lost, named after what goes wrong elsewhere."""

from typing import Any

import pytest

from sglang_controllers.manifest import Manifest, ObjectKey
from tests.simulation import World, a_serving_world, engines_key


def pod_spec(world: World, key: ObjectKey) -> Manifest:
    spec: Manifest = world.children[key]["spec"]["template"]["spec"]
    return spec


def engines(**engine: Any) -> Manifest:
    world = a_serving_world(engine=engine)
    return pod_spec(world, engines_key(world))


def routers(**engine: Any) -> Manifest:
    world = a_serving_world(engine=engine)
    (key,) = (k for k in world.children if k.kind == "Deployment" and "-router-" in k.name)
    return pod_spec(world, key)


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 120), ("8s", 8), ("1h", 3600)])
def test_no_grace_period_is_shorter_than_the_drain(timeout: str | None, seconds: int) -> None:
    spec = engines(**({"drainTimeout": timeout} if timeout else {}))
    (engine,) = spec["containers"]

    command = engine["lifecycle"]["preStop"]["exec"]["command"]
    reaction_s, drain_s = int(command[-2]), int(command[-1])

    assert drain_s == seconds
    # What preStop takes is taken from the grace period.
    assert spec["terminationGracePeriodSeconds"] == reaction_s + drain_s + 30


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 120), ("10m", 600)])
def test_a_router_that_goes_may_take_as_long_as_an_engine(
    timeout: str | None, seconds: int
) -> None:
    spec = routers(**({"drainTimeout": timeout} if timeout else {}))
    (router,) = spec["containers"]
    ends_s = int(router["args"][router["args"].index("--shutdown-grace-period-secs") + 1])

    sleeps_s = router["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert ends_s == seconds
    assert spec["terminationGracePeriodSeconds"] == sleeps_s + ends_s + 30


def test_no_probe_is_faster_than_the_health_check_that_it_waits_for() -> None:
    (engine,) = engines()["containers"]

    for probe in ("startupProbe", "readinessProbe"):
        assert engine[probe]["httpGet"]["path"] == "/ready"
        assert engine[probe]["timeoutSeconds"] >= 20


def test_no_liveness_probe_kills_a_loading_or_busy_engine() -> None:
    (engine,) = engines()["containers"]

    assert "livenessProbe" not in engine


def test_the_agent_outlives_the_engine_and_does_not_hold_up_its_start() -> None:
    (agent,) = engines()["initContainers"]

    assert agent["restartPolicy"] == "Always"
    assert "startupProbe" not in agent

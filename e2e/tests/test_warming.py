"""The first request after a start, an edit or a scale-out finds its system prompt in the cache."""

import json
import time
from typing import Any

import pytest

from e2e.tests.inside import ASK
from e2e.tests.kube import (
    NO_ACCELERATOR,
    Manifest,
    Namespace,
    a_cluster,
    get,
    kubectl,
    on_gpu_nodes,
    wait_for,
    with_arguments,
)

WARM, COLD = "warm", "cold"
SHARE = 0.95
"""Of a warmed prompt, that is in the cache: its end may become part of the next token."""

EFFECTIVE_S = 10
"""From an edit of a ConfigMap until its prompts are warmed, on an idle engine."""

PEERS_SHARE = 0.9
SUBJECTS = [f"mountain number {number}" for number in range(10)]
"""Each with a prompt of its own. Whoever knows none of them finds at most half of what is asked twice."""


def prompt_about(subject: str) -> str:
    return f"You answer questions about {subject}. " + " ".join(
        f"Rule {number}: when {subject} is asked about, give reason number {number} first."
        for number in range(1, 15)
    )


def system(subject: str) -> list[Manifest]:
    return [{"role": "system", "content": prompt_about(subject)}]


def prompts(name: str, **entries: list[Any]) -> Manifest:
    """A ConfigMap; each keyword is a key, a list of entries its value."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {f"{key}.json": json.dumps(value) for key, value in entries.items()},
    }


def from_config_map(name: str) -> Manifest:
    return {"promptsFrom": [{"configMap": {"name": name}}], "fromPeers": {"maxTokens": 8000}}


@pytest.fixture(scope="module")
def warming(namespace: Namespace) -> Namespace:
    """A cluster that warms, gated, and one that does not."""
    engine = NO_ACCELERATOR | with_arguments(max_total_tokens=16384)
    cache = {"warming": from_config_map("prompts") | {"gate": {"timeout": "2m"}}}
    namespace.apply(
        prompts("prompts", chat=[{"messages": system("rivers")}]),
        on_gpu_nodes(a_cluster(WARM, engine, cache=cache)),
        on_gpu_nodes(a_cluster(COLD, NO_ACCELERATOR)),
    )
    namespace.wait_ready(WARM)
    namespace.wait_ready(COLD)
    return namespace


def ask(namespace: Namespace, pod: Manifest, path: str, *bodies: Manifest) -> list[Manifest]:
    """The engine of this pod, past every router."""
    run = ("python3", "-c", ASK, path, *map(json.dumps, bodies))
    said = namespace.kubectl("exec", pod["metadata"]["name"], "-c", "engine", "--", *run)
    return [json.loads(line) for line in said.splitlines()]


def cached(namespace: Namespace, pod: Manifest, subject: str, *questions: str) -> list[int]:
    """How many tokens of the prompt of each user's request were in the cache."""
    bodies = [
        {
            "messages": [*system(subject), {"role": "user", "content": question}],
            "max_tokens": 1,
            "temperature": 0,
            "return_meta_info": True,
        }
        for question in questions
    ]
    answers = ask(namespace, pod, "/v1/chat/completions", *bodies)
    return [answer["choices"][0]["meta_info"]["cached_tokens"] for answer in answers]


def asked(namespace: Namespace, pod: Manifest) -> int:
    """How many tokens of 20 requests were in the cache: two about each subject."""
    return sum(sum(cached(namespace, pod, s, "Which?", "How high?")) for s in SUBJECTS)


def tokens(namespace: Namespace, pod: Manifest, subject: str) -> int:
    (answer,) = ask(namespace, pod, "/tokenize", {"prompt": prompt_about(subject)})
    return int(answer["count"])


def told(namespace: Namespace, pod: Manifest, name: str) -> float:
    """A metric of the pod's agent."""
    path = f"/api/v1/namespaces/{namespace.name}/pods/{pod['metadata']['name']}:30001/proxy/metrics"
    lines = kubectl("get", "--raw", path).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def edited(namespace: Namespace, config_map: Manifest, warmed: int) -> float:
    """Seconds from the edit until so many prompts are warmed."""
    (pod,) = namespace.pods(WARM)
    began = time.monotonic()
    namespace.apply(config_map)
    name = 'sglang_agent_warming_prompts{state="warmed"}'
    wait_for(lambda: told(namespace, pod, name) == warmed, 60)
    return time.monotonic() - began


def test_the_first_request_finds_its_system_prompt(warming: Namespace) -> None:
    (warm,), (cold,) = warming.pods(WARM), warming.pods(COLD)
    whole = tokens(warming, warm, "rivers")

    (with_warming,) = cached(warming, warm, "rivers", "Which is the longest?")
    (without,) = cached(warming, cold, "rivers", "Which is the longest?")

    assert with_warming >= SHARE * whole
    assert without == 0


def test_the_status_says_that_it_is_warm(warming: Namespace) -> None:
    wait_for(lambda: warming.condition(WARM, "Warmed").get("status") == "True", 30)

    assert warming.cluster(WARM)["status"]["warming"]["warmed"] == 1


def test_an_edit_is_effective_at_once_and_restarts_nothing(warming: Namespace) -> None:
    (before,) = warming.pods(WARM)
    entries = [{"messages": system("rivers")}, {"messages": system("bridges")}]

    took_s = edited(warming, prompts("prompts", chat=entries), 2)

    (after,) = warming.pods(WARM)
    (found,) = cached(warming, after, "bridges", "Which is the oldest?")
    assert took_s < EFFECTIVE_S
    assert found >= SHARE * tokens(warming, after, "bridges")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


def test_another_name_restarts_nothing(warming: Namespace) -> None:
    """As Kustomize names ConfigMaps, by a hash of what is in them."""
    (before,) = warming.pods(WARM)
    revision = warming.cluster(WARM)["status"]["currentRevision"]
    subjects = ("rivers", "bridges", "clouds")
    warming.apply(prompts("prompts-7h2k", chat=[{"messages": system(s)} for s in subjects]))

    change = {"spec": {"cache": {"warming": from_config_map("prompts-7h2k")}}}
    warming.kubectl("patch", "sglc", WARM, "--type=merge", f"-p={json.dumps(change)}")
    name = 'sglang_agent_warming_prompts{state="warmed"}'
    wait_for(lambda: told(warming, before, name) == 3, 60)

    (after,) = warming.pods(WARM)
    (found,) = cached(warming, after, "clouds", "Which are the highest?")
    assert found >= SHARE * tokens(warming, after, "clouds")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert warming.cluster(WARM)["status"]["currentRevision"] == revision


def test_a_bad_entry_is_told_by_its_place_and_the_others_are_warmed(warming: Namespace) -> None:
    entries = [{"messages": system("rivers")}, {"massages": []}, {"messages": system("winds")}]
    warming.apply(prompts("prompts-7h2k", chat=entries))

    wait_for(lambda: warming.condition(WARM, "Warmed").get("reason") == "PromptsFailed", 60)

    (pod,) = warming.pods(WARM)
    (failure,) = warming.cluster(WARM)["status"]["warming"]["failures"]
    assert (failure["configMap"], failure["key"]) == ("prompts-7h2k", "chat.json")
    assert failure["index"] == 1
    (found,) = cached(warming, pod, "winds", "Which is the coldest?")
    assert found >= SHARE * tokens(warming, pod, "winds")
    assert warming.condition(WARM, "Ready")["status"] == "True"


def test_a_missing_config_map_is_told_and_stops_nothing(warming: Namespace) -> None:
    change = {"spec": {"cache": {"warming": from_config_map("not-there")}}}
    warming.kubectl("patch", "sglc", WARM, "--type=merge", f"-p={json.dumps(change)}")

    wait_for(lambda: warming.condition(WARM, "Warmed").get("reason") == "WarmingSourceMissing", 30)

    assert "not-there" in warming.condition(WARM, "Warmed")["message"]
    assert warming.condition(WARM, "Ready")["status"] == "True"
    warming.apply(prompts("not-there", chat=[{"messages": system("rivers")}]))
    wait_for(lambda: warming.condition(WARM, "Warmed").get("status") == "True", 30)


def test_a_new_replica_has_what_its_peer_is_asked_for(warming: Namespace) -> None:
    (old,) = warming.pods(WARM)
    asked(warming, old)

    warming.kubectl("scale", "sglc", WARM, "--replicas=2")
    wait_for(lambda: len(warming.pods(WARM)) == 2, 30)
    warming.wait_ready(WARM)

    (new,) = (p for p in warming.pods(WARM) if p["metadata"]["uid"] != old["metadata"]["uid"])
    by_new, by_old = asked(warming, new), asked(warming, old)
    print(f"tokens cached: {by_new} by the new one, {by_old} by the old one")
    assert by_new >= PEERS_SHARE * by_old > 0


def test_no_prompt_is_in_a_log_or_the_status(warming: Namespace) -> None:
    pods = warming.pods(WARM)
    logs = [warming.kubectl("logs", p["metadata"]["name"], "-c", "agent") for p in pods]
    status = json.dumps(warming.cluster(WARM)["status"])
    events = json.dumps(get("-n", warming.name, "events"))

    assert all(logs)
    assert not [text for text in (*logs, status, events) if "give reason number" in text]

"""What `make quickstart` leaves behind: a cluster that answers through its Service."""

import subprocess

from e2e.tests.kube import Namespace

NAME = "smollm2"


def test_the_real_model_answers_through_the_service() -> None:
    answer = subprocess.run(
        ["e2e/ask.py", "--cluster", NAME, "What is the capital of France?"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "Paris" in answer.stdout


def test_the_example_is_ready_with_its_settings() -> None:
    default = Namespace("default")
    info = default.server_info(NAME)

    assert default.condition(NAME, "Ready")["reason"] == "Serving"
    assert info["radix_eviction_policy"] == "lfu"
    assert info["speculative_algorithm"] == "NGRAM"

import pytest

from sglang_agent.load import STALE_S, UnknownLoadError, held_by_scheduler, open_requests
from tests.unit.agent.answers import METRICS, loads


def test_running_and_waiting_requests_of_all_ranks_are_held() -> None:
    assert held_by_scheduler(loads((1, 2), (0, 4))) == 7


def test_every_request_but_those_that_only_read_is_open() -> None:
    assert open_requests(METRICS) == 6


def test_an_engine_that_was_only_asked_for_its_metrics_has_nothing_open() -> None:
    text = 'sglang:http_requests_active{endpoint="/metrics",method="GET"} 1.0\n'

    assert open_requests(text) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "busy",
        "[]",
        "{}",
        '{"timestamp": "2026-11-01T12:00:00+00:00", "loads": null}',
        '{"timestamp": "2026-11-01T12:00:00+00:00", "loads": [{}]}',
        '{"timestamp": "noon", "loads": []}',
        loads(),
        loads((0, 0)).replace('"num_running_reqs": 0', '"num_running_reqs": null'),
        loads((0, 0), age_s=STALE_S + 1),
        # A scheduler that has never published.
        loads((0, 0), age_s=1793534400.0),
    ],
)
def test_what_the_scheduler_does_not_say_is_unknown(text: str) -> None:
    with pytest.raises(UnknownLoadError):
        held_by_scheduler(text)


@pytest.mark.parametrize("text", ["", 'sglang:http_requests_total{method="POST"} 0.0\n'])
def test_what_is_not_counted_is_unknown(text: str) -> None:
    with pytest.raises(UnknownLoadError):
        open_requests(text)

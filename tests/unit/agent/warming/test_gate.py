from functools import reduce

import pytest

from sglang_agent.warming.gate import Gate, looked


def after(gate: Gate, *looks: tuple[float, bool]) -> Gate:
    return reduce(lambda seen, look: looked(seen, *look), looks, gate)


def test_without_a_time_out_nothing_waits() -> None:
    assert Gate(None).open
    assert after(Gate(None), (0, False)).open


@pytest.mark.parametrize(
    ("looks", "opened", "timed_out"),
    [
        pytest.param([], False, False, id="before the engine is ready"),
        pytest.param([(100, False), (159, False)], False, False, id="while prompts are left"),
        pytest.param([(100, False), (110, True)], True, False, id="all was tried"),
        pytest.param([(100, False), (160, False)], True, True, id="in time or not"),
        pytest.param([(100, True), (300, False)], True, False, id="an edit does not shut it"),
        pytest.param([(100, False), (160, False), (170, True)], True, True, id="late is late"),
    ],
)
def test_the_gate_opens_once(
    looks: list[tuple[float, bool]], opened: bool, timed_out: bool
) -> None:
    gate = after(Gate(60), *looks)

    assert (gate.open, gate.timed_out) == (opened, timed_out)

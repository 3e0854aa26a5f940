"""What is read of an agent's words about prompts, and what is refused."""

import pytest

from sglang_controllers.reports import PromptFailure, WarmingReport
from sglang_operator.answers import MalformedError
from sglang_operator.warming_answers import STATES, warming_answer

TOLD = """# HELP sglang_agent_warming_state 1 for the state it is in.
# TYPE sglang_agent_warming_state gauge
sglang_agent_warming_state{state="off"} 0.0
sglang_agent_warming_state{state="full"} 0.0
sglang_agent_warming_state{state="warmed"} 1.0
sglang_agent_warming_prompts{state="warmed"} 10.0
sglang_agent_warming_prompts{state="failed"} 2.0
sglang_agent_warming_prompts{state="pending"} 0.0
sglang_agent_warming_tokens_total{kind="computed"} 4711.0
sglang_agent_warming_tokens_total{kind="cached"} 3.0
sglang_agent_warming_sources_info{hash="0123456789abcdef-fedcba9876543210"} 1.0
sglang_agent_warming_failures{claim="",config_map="prompts",index="3",key="a.jsonl"} 1.0
sglang_agent_warming_failures{claim="big",config_map="",index="",key="a \\"b\\" \\\\ c"} 1.0
sglang_agent_warming_hit_ratio 0.98
"""


def test_what_an_agent_says_is_understood() -> None:
    assert warming_answer(TOLD.encode()) == WarmingReport(
        state="warmed",
        sources="0123456789abcdef-fedcba9876543210",
        warmed=10,
        failed=2,
        tokens=4711,
        failures=(
            PromptFailure("prompts", "", "a.jsonl", "3"),
            PromptFailure("", "big", 'a "b" \\ c', ""),
        ),
    )


@pytest.mark.parametrize("text", ["", "sglang_agent_draining 0.0\n"])
def test_an_agent_without_warming_says_nothing_of_it(text: str) -> None:
    assert warming_answer(text.encode()) is None


def test_an_agent_whose_warming_is_off_says_nothing() -> None:
    assert warming_answer(b'sglang_agent_warming_state{state="off"} 1.0\n') is None


@pytest.mark.parametrize("state", [state for state in STATES if state != "off"])
def test_every_state_is_known(state: str) -> None:
    said = warming_answer(f'sglang_agent_warming_state{{state="{state}"}} 1\n'.encode())

    assert said == WarmingReport(state, "")


STATE = 'sglang_agent_warming_state{state="warmed"} 1\n'
FAILURE = 'sglang_agent_warming_failures{config_map="a",key="k",index="1"} 1\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (STATE.replace("warmed", "lukewarm"), "state of warming is lukewarm"),
        (STATE + STATE.replace("warmed", "full"), "state of warming is warmed, full"),
        (STATE.replace("} 1", "} x"), "number about its prompts is x"),
        (STATE.replace("} 1", "} NaN"), "number about its prompts is NaN"),
        (STATE + 'sglang_agent_warming_prompts{state="warmed"} -1\n', "prompts is -1"),
        (STATE + 'sglang_agent_warming_tokens_total{kind="computed"} 1e300\n', "prompts is 1e300"),
        (STATE + 'sglang_agent_warming_sources_info{hash="<b>"} 1\n', "hash of its prompts"),
        (STATE + 'sglang_agent_warming_prompts{state="warmed"} 2e9\n', "prompts is 2e9"),
        (STATE.replace('state="warmed"', 'x="y"'), "state of warming is "),
        (STATE + FAILURE * 21, "more than 20"),
        (STATE + FAILURE.replace('"1"', '"-1"'), "index -1"),
        (STATE + FAILURE.replace('"1"', '"' + "9" * 99 + '"'), "index 999"),
        (STATE + FAILURE.replace('"a"', '"' + "a" * 254 + '"'), "the key k"),
        (STATE + FAILURE.replace('"k"', '"' + "k" * 1025 + '"'), "the key kkk"),
    ],
)
def test_what_no_agent_says_is_refused(text: str, problem: str) -> None:
    with pytest.raises(MalformedError, match=problem) as raised:
        warming_answer(text.encode())

    assert len(str(raised.value)) < 150


@pytest.mark.parametrize("body", [b"\xff", STATE.encode() + b"\xff"])
def test_what_is_not_text_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedError):
        warming_answer(body)

"""What agents say of their prompts, read from their metrics and checked like all they say."""

import re
from collections.abc import Iterator

from sglang_controllers.reports import PromptFailure, WarmingReport
from sglang_operator.answers import MalformedError, text_of

STATES = ("off", "waiting", "warming", "warmed", "full", "timed_out")

SAMPLE = re.compile(r"^sglang_agent_warming_(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ESCAPED = re.compile(r"\\(.)")
HASH = re.compile(r"[0-9a-f-]{0,80}")
WHOLE = re.compile(r"[0-9]{1,12}")

MOST_FAILURES = 20
MOST_PROMPTS = 10**9
MOST_TOKENS = 10**15
"""Status has room for the sum of two of the first, and for one of the second."""

LONGEST = 253
"""Characters of a name."""
LONGEST_KEY = 1024

Sample = tuple[dict[str, str], str]


def warming_answer(body: bytes) -> WarmingReport | None:
    """None: the agent says nothing of prompts, for none are its business."""
    samples: dict[str, list[Sample]] = {}
    for name, labels, value in SAMPLE.findall(text_of(body)):
        samples.setdefault(name, []).append((_labels(labels), value))
    states = [told.get("state", "") for told, value in samples.get("state", []) if _number(value)]
    if not states or states == ["off"]:
        return None
    if len(states) > 1 or states[0] not in STATES:
        raise MalformedError(f"its state of warming is {', '.join(states)[:40]}")
    prompts = {told.get("state"): _number(value) for told, value in samples.get("prompts", [])}
    tokens = {
        told.get("kind"): _number(value, MOST_TOKENS)
        for told, value in samples.get("tokens_total", [])
    }
    return WarmingReport(
        state=states[0],
        sources=_hash(samples.get("sources_info", [])),
        warmed=prompts.get("warmed", 0),
        failed=prompts.get("failed", 0),
        tokens=tokens.get("computed", 0),
        failures=tuple(_failures(samples.get("failures", []))),
        pending=prompts.get("pending", 0),
    )


def _labels(text: str) -> dict[str, str]:
    return {name: ESCAPED.sub(_plain, value) for name, value in LABEL.findall(text)}


def _plain(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _hash(samples: list[Sample]) -> str:
    told = [labels.get("hash", "") for labels, value in samples if _number(value)]
    found = told[0] if told else ""
    if len(told) > 1 or not HASH.fullmatch(found):
        raise MalformedError(f"the hash of its prompts is {', '.join(told)[:40]}")
    return found


def _failures(samples: list[Sample]) -> Iterator[PromptFailure]:
    if len(samples) > MOST_FAILURES:
        raise MalformedError(f"it lists more than {MOST_FAILURES} prompts that failed")
    for labels, value in samples:
        config_map, claim = labels.get("config_map", ""), labels.get("claim", "")
        key, index = labels.get("key", ""), labels.get("index", "")
        whole = not index or WHOLE.fullmatch(index)
        if not whole or len(key) > LONGEST_KEY or max(len(config_map), len(claim)) > LONGEST:
            raise MalformedError(f"a prompt that failed has the key {key[:40]}, index {index[:40]}")
        if _number(value):
            yield PromptFailure(config_map, claim, key, index)


def _number(value: str, most: int = MOST_PROMPTS) -> int:
    try:
        number = float(value)
    except ValueError:
        number = -1
    if not 0 <= number <= most:  # not true of NaN either
        raise MalformedError(f"a number about its prompts is {value[:40]}")
    return round(number)

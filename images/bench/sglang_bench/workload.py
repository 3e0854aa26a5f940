"""Requests as users would send them: each begins with one of the prompts, and ends with words of its own."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sglang_bench.errors import BenchError
from sglang_warming.files import Problem, entries
from sglang_warming.prompts import Prompt

OWN_WORDS = 12
WORDS = (
    "bird",
    "cloud",
    "door",
    "fish",
    "gold",
    "hill",
    "iron",
    "lake",
    "moon",
    "rain",
    "snow",
    "tree",
)


def prompts_of(path: Path) -> tuple[list[Prompt], list[str]]:
    """The prompts of a file, and what is wrong with its other entries."""
    prompts, problems = [], []
    try:
        with path.open("rb") as stream:
            for entry in entries(path.name, stream):
                if isinstance(entry, Problem):
                    problems.append(f"{path}: entry {entry.index}: {entry.message}")
                else:
                    prompts.append(entry[1])
    except OSError as error:
        raise BenchError(
            f'--prompts: got "{path}"; it cannot be read ({error.strerror}); name a file of prompts'
        ) from error
    if not prompts:
        reason = problems[0] if problems else "it is empty"
        raise BenchError(f'--prompts: got "{path}"; it has no prompt; {reason}')
    return prompts, problems


def requests(prompts: Sequence[Prompt], count: int, seed: int) -> list[Prompt]:
    """The same ones for the same seed. No two end alike, so only the prompts are shared."""
    chance = random.Random(seed)  # noqa: S311  no secret
    return [_request(chance.choice(prompts), number, chance) for number in range(count)]


def _request(prompt: Prompt, number: int, chance: random.Random) -> Prompt:
    question = " ".join([*chance.choices(WORDS, k=OWN_WORDS), str(number)])
    if prompt.text is not None:
        return replace(prompt, text=f"{prompt.text} {question}")
    if prompt.input_ids is not None:
        own = chance.choices(prompt.input_ids, k=OWN_WORDS)  # ids that the model has
        return replace(prompt, input_ids=prompt.input_ids + tuple(own))
    message = {"role": "user", "content": question}
    return replace(prompt, messages=(*(prompt.messages or ()), message))

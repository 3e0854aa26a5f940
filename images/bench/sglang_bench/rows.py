"""What was measured, in whichever way: for each state of the cache its first requests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

FIRST = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """One request: its prompt, and what of it was cached; tokens of a server, blocks of a trace.

    `ttft_s` None: there was no server that could have taken time.
    """

    prompt: int
    cached: int
    ttft_s: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """The requests after the cache was brought into a state, in their order."""

    state: str
    samples: tuple[Sample, ...]

    def ttft_s(self, share: float) -> float | None:
        """The least time that so large a share of the requests did not exceed."""
        times = sorted(sample.ttft_s for sample in self.samples if sample.ttft_s is not None)
        return times[math.ceil(share * len(times)) - 1] if times else None


def hit_ratio(samples: Sequence[Sample]) -> float:
    """Of what all the prompts have together."""
    prompt = sum(sample.prompt for sample in samples)
    return sum(sample.cached for sample in samples) / prompt if prompt else 0.0

"""Time as an argument."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """`monotonic` counts seconds and measures; `now` is for what people and objects say."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _now

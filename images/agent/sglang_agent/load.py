"""How many requests the engine still owes somebody, from two of its answers.

Neither suffices alone (measured with SGLang 0.5.23 on a CPU):
- /v1/loads is what the scheduler holds: requests that run or wait. It said 12 when 60 requests had
  arrived, for the others were being tokenized, and 0 for the 12 s that a slow client left the end
  of its stream unread. While the engine is busy its figures were up to 1.7 s old.
- The gauge sglang:http_requests_active in /metrics counts each from its arrival until its last
  byte is sent; a stream until 2 s after that, which only errs on the safe side. Work that goes on
  after its request was answered (a stored background response) is known to the scheduler alone.
So the larger one counts. /metrics takes the engine 15 to 70 ms, /v1/loads 5 to 20 ms: the
former is asked for during a drain only.
"""

import json
import re
from datetime import datetime
from typing import Any

LOADS_PATH = "/v1/loads?include=core"
METRICS_PATH = "/metrics"

STALE_S = 10.0
"""A scheduler publishes every second while it is idle, and every 15 steps while it works. Older
figures are of one that hangs, or is busy with something that they do not show."""

GAUGE = re.compile(r"^sglang:http_requests_active\{(.*)\} (\S+)$", re.MULTILINE)
METHOD = re.compile(r'method="(\w+)"')
ONLY_READING = ("GET", "HEAD", "OPTIONS")
"""Probes, scrapes and our own looks. What runs the model is a POST or a PUT."""


class UnknownLoadError(Exception):
    """What is in flight cannot be told from an answer; the text says why."""


def held_by_scheduler(text: str) -> int:
    """Requests that run or wait, of all data-parallel ranks, from the answer of /v1/loads."""
    try:
        answer = json.loads(text)
        now_s = datetime.fromisoformat(answer["timestamp"]).timestamp()
        loads: list[dict[str, Any]] = answer["loads"]
        held = [int(load["num_running_reqs"]) + int(load["num_waiting_reqs"]) for load in loads]
        ages_s = [now_s - float(load["timestamp"]) for load in loads]
    except (ValueError, KeyError, TypeError) as error:
        raise UnknownLoadError(f"{LOADS_PATH} is not understood: {error!r}") from error
    if not held:
        raise UnknownLoadError(f"{LOADS_PATH} tells of no scheduler")
    if max(ages_s) > STALE_S:
        raise UnknownLoadError(f"{LOADS_PATH} is {max(ages_s):.0f} s old")
    return sum(held)


def open_requests(text: str) -> int:
    """Requests whose answer is not yet sent, from the answer of /metrics."""
    samples = GAUGE.findall(text)
    # The scrape itself is one of them: without any, the engine does not count.
    if not samples:
        raise UnknownLoadError(f"{METRICS_PATH} has no sglang:http_requests_active")
    total = 0.0
    for labels, value in samples:
        method = METHOD.search(labels)
        if not (method and method[1] in ONLY_READING):
            total += float(value)
    return round(total)

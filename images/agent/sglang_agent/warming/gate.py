"""Whether readiness waits for warming. It does so once for each engine process."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gate:
    """`since_s`: when this engine became ready, None before. It opens once and stays open."""

    timeout_s: float | None
    since_s: float | None = None
    opened: bool = False
    timed_out: bool = False

    @property
    def open(self) -> bool:
        return self.opened or self.timeout_s is None


def looked(gate: Gate, now_s: float, settled: bool) -> Gate:
    """The engine is ready now, and all is warmed or not."""
    since_s = now_s if gate.since_s is None else gate.since_s
    if gate.open:
        return gate
    if settled:
        return Gate(gate.timeout_s, since_s, opened=True)
    late = gate.timeout_s is not None and now_s - since_s >= gate.timeout_s
    return Gate(gate.timeout_s, since_s, opened=late, timed_out=late)

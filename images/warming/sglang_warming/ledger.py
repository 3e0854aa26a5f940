"""What was warmed since the engine's cache was empty, and how much of the cache that takes."""

from collections.abc import Mapping

SHARE = 0.8
"""Of the engine's cache. More of its own prompts would evict one another, or leave requests none."""


class Ledger:
    """Prompts go by their identity. Tokens are those that a rank had to compute."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}
        self._sent_s: dict[str, float] = {}
        self._every_s: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tokens

    def add(self, name: str, tokens: int, now_s: float) -> None:
        self._tokens[name] = tokens
        self.sent(name, now_s)

    def sent(self, name: str, now_s: float) -> None:
        self._sent_s[name] = now_s

    def repeat(self, name: str, every_s: float | None) -> None:
        """It is to be sent so often, or more often where another entry wants that."""
        if every_s is not None:
            self._every_s[name] = min(every_s, self._every_s.get(name, every_s))

    def due(self, name: str, now_s: float) -> bool:
        return name in self._every_s and self._due_s(name) <= now_s

    def next_due_s(self) -> float | None:
        return min(map(self._due_s, self._every_s), default=None)

    def _due_s(self, name: str) -> float:
        return self._sent_s[name] + self._every_s[name]

    def keep(self, wanted: Mapping[str, float | None]) -> None:
        """Forget all others: nobody wants them any more, so they may be evicted.

        The values say how often a prompt is to be sent from now on; None: not again.
        """
        self._tokens = {name: n for name, n in self._tokens.items() if name in wanted}
        self._sent_s = {name: at for name, at in self._sent_s.items() if name in wanted}
        self._every_s = {
            name: every for name in self._tokens if (every := wanted[name]) is not None
        }

    def clear(self) -> None:
        self._tokens.clear()
        self._sent_s.clear()
        self._every_s.clear()

    def room_tokens(self, capacity_tokens: int) -> int:
        """How much may still be computed without evicting what is warmed."""
        return max(0, int(SHARE * capacity_tokens) - sum(self._tokens.values()))

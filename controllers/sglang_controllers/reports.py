"""What running pods say of themselves when they are asked, beside what Kubernetes says of them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PromptFailure:
    """A prompt that was not warmed, or a whole source where `index` is empty.

    Either `config_map` or `claim` is empty; of a claim, `key` is the path of the file.
    """

    config_map: str
    claim: str
    key: str
    index: str


@dataclass(frozen=True, slots=True)
class WarmingReport:
    """What an agent says of its prompts.

    `sources` is the hash of the slots that it sees. `warmed`, `failed` and `pending` are prompts,
    `tokens` those computed for them.
    """

    state: str
    sources: str
    warmed: int = 0
    failed: int = 0
    tokens: int = 0
    failures: tuple[PromptFailure, ...] = ()
    pending: int = 0

    @property
    def tenths(self) -> int:
        """How many of ten of its prompts it has tried."""
        tried = self.warmed + self.failed
        return 10 * tried // max(1, tried + self.pending)

    @property
    def done(self) -> bool:
        """Nothing more is warmed until something changes."""
        return self.state in ("warmed", "full")

    @property
    def gated(self) -> bool:
        """A gate would be closed."""
        return self.state in ("waiting", "warming")


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What the agent of an engine pod says.

    `asked_at` is when it was last asked, whether it answered or not. `in_flight` None: unknown,
    also when nobody answered. `has_token` is True when nobody answered. `warming` is what was last
    said of it, None: nothing was.
    """

    asked_at: datetime
    in_flight: int | None
    has_token: bool
    warming: WarmingReport | None = None


@dataclass(frozen=True, slots=True)
class RouterReport:
    """What a router says of the engines that it sends requests to.

    `asked_at` is when it was last asked, whether it answered or not. `workers` are the URLs of
    its healthy engines, None: unknown, as nobody answered.
    """

    asked_at: datetime
    workers: frozenset[str] | None


CUT = "cut"
"""The outcome of a drain whose time was over before its requests were."""


@dataclass(frozen=True, slots=True)
class Drain:
    """How the drain of a pod's engine ended, as its agent left it behind.

    `outcome` is drained, cut or restarted; `in_flight`: requests that were cut, None: unknown.
    """

    uid: str
    pod: str
    outcome: str
    seconds: float
    in_flight: int | None

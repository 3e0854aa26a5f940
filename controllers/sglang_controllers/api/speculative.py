"""`spec.speculative`: drafting tokens cheaply, and verifying them in one step."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from sglang_controllers.api.files import DraftModel
from sglang_controllers.api.model import Model, Rule


class MatchType(StrEnum):
    BFS = "BFS"
    PROB = "PROB"


class EagleAlgorithm(StrEnum):
    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE3"


class Ngram(Model):
    num_draft_tokens: int | None = Field(default=None, ge=2, le=1024)
    """Tokens verified in each step: the newest one and the drafts after it. Default 12."""

    max_trie_depth: int | None = Field(default=None, ge=2, le=1024)
    """Tokens of context that a match may span. Default 18."""

    min_bfs_breadth: int | None = Field(default=None, ge=1, le=1024)
    """Fewest continuations followed at each match. At most `maxBfsBreadth`. Default 1."""

    max_bfs_breadth: int | None = Field(default=None, ge=1, le=1024)
    """Most continuations followed at each match. 1 drafts a chain, more draft a tree. Default
    10."""

    match_type: Annotated[MatchType | None, Field(strict=False)] = None
    """Which continuations are drafted: `BFS` the latest seen, `PROB` the most frequent. Default
    `BFS`."""

    # More than the deepest trie: SGLang's trie breaks when one insertion does not fit.
    capacity: int | None = Field(default=None, ge=2048, le=1_000_000_000)
    """Nodes of the trie that remembers past answers, about 180 bytes of memory each on
    every rank. Default 10000000 (1.8 GB)."""

    rules = (
        Rule(
            field="minBfsBreadth",
            message="must be at most maxBfsBreadth (default 10); lower it or raise maxBfsBreadth",
            cel="(has(self.minBfsBreadth) ? self.minBfsBreadth : 1) <= "
            "(has(self.maxBfsBreadth) ? self.maxBfsBreadth : 10)",
            holds=lambda ngram: (ngram.min_bfs_breadth or 1) <= (ngram.max_bfs_breadth or 10),
        ),
    )


def _whole_shape(draft: Any) -> bool:
    steps, topk, tokens = draft.num_steps, draft.topk, draft.num_draft_tokens
    if steps is None:
        return topk is None and tokens is None
    return topk == 1 or (topk is not None and tokens is not None)


SHAPE_RULE = Rule(
    # SGLang asserts the first half and, lacking the second, compares None with a number.
    field="numSteps",
    message="numSteps, topk and numDraftTokens are chosen together (with topk 1 numDraftTokens may "
    "be left out); set all or remove all",
    cel="has(self.numSteps) ? (has(self.topk) && (self.topk == 1 || has(self.numDraftTokens))) : "
    "(!has(self.topk) && !has(self.numDraftTokens))",
    holds=_whole_shape,
)


class Drafting(Model):
    """What every algorithm with a draft model shares."""

    num_steps: int | None = Field(default=None, ge=1, le=1024)
    """Steps of the draft model before each verification. Default: SGLang's choice for the model,
    3 or 5."""

    topk: int | None = Field(default=None, ge=1, le=1024)
    """Tokens drafted in each step: 1 drafts a chain, more draft a tree. Default: SGLang's choice
    for the model, 1 or 4."""

    num_draft_tokens: int | None = Field(default=None, ge=2, le=4096)
    """Tokens verified in each step. With topk 1 SGLang verifies numSteps + 1, whatever is written
    here. Default: SGLang's choice for the model, 4 or 8."""

    rules = (SHAPE_RULE,)


class Eagle(Drafting):
    algorithm: Annotated[EagleAlgorithm, Field(strict=False)]
    """`EAGLE` or `EAGLE3`, as the draft model was trained."""

    draft_model: DraftModel | None = None
    """Draft model that belongs to the served model. Default: the served model's own
    multi-token-prediction layers, for models that have them."""


class Nextn(Drafting):
    draft_model: DraftModel | None = None
    """Multi-token-prediction layers that are not among the model's files. Default: the served
    model's own."""


class Standalone(Drafting):
    draft_model: DraftModel
    """A small model with the served model's tokenizer, for example the smallest of its family."""


class Speculative(Model):
    ngram: Ngram | None = None
    """Draft tokens from what this engine answered before; needs no draft model. `{}` switches it
    on with SGLang's defaults. Default: off."""

    eagle: Eagle | None = None
    """A draft head trained on the served model's hidden states. Default: off."""

    nextn: Nextn | None = None
    """Multi-token-prediction layers that the model was trained with, for example of DeepSeek or
    GLM. `{}` switches it on with SGLang's defaults. Default: off."""

    standalone: Standalone | None = None
    """A small model of its own that drafts. Default: off."""

    rules = (
        Rule(
            field="",
            message="ngram, eagle, nextn and standalone exclude each other; remove all but one",
            cel="[has(self.ngram), has(self.eagle), has(self.nextn), has(self.standalone)]"
            ".filter(one, one).size() <= 1",
            holds=lambda one_of: len(one_of.model_fields_set) <= 1,
        ),
    )

"""Specs for hypothesis: every field, in every combination that the models accept."""

from typing import Any

from hypothesis import strategies as st

from sglang_controllers.api.spec import EvictionPolicy, MatchType, OverlapMode, SchedulingPolicy

SOURCES = st.sampled_from(
    ["oci://ghcr.io/team/smollm2:v1", "pvc://models", "pvc://models/a/b", "image:///models/smollm2"]
)
WORDS = st.text("abcdefghij-_/. 0123456789", min_size=1, max_size=12)
FLAGS = st.from_regex(r"x[a-z]{1,6}(-[a-z]{1,6}){0,2}", fullmatch=True)
"""Begin with x: none of SGLang's, so none that a field owns."""

SCALARS = st.one_of(
    st.just(value=True), st.integers(), st.floats(allow_nan=False, allow_infinity=False), WORDS
)
LISTS = st.lists(
    st.one_of(st.integers(0), st.from_regex(r"[a-z0-9=/]{1,8}", fullmatch=True)), min_size=1
)
JSON_OBJECTS = st.dictionaries(WORDS, st.one_of(st.none(), st.booleans(), SCALARS), max_size=3)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with any of `fields`."""
    return st.fixed_dictionaries({}, optional=fields)


def specs(
    extra_args: st.SearchStrategy[dict[str, Any]] | None = None,
) -> st.SearchStrategy[dict[str, Any]]:
    """Raw specs without problems between typed fields."""
    extra = st.dictionaries(FLAGS, st.one_of(SCALARS, LISTS, JSON_OBJECTS), max_size=4)
    return st.fixed_dictionaries(
        {
            "model": st.fixed_dictionaries(
                {"source": SOURCES}, optional={"servedName": st.just("a/b")}
            )
        },
        optional={
            "replicas": st.integers(0, 5),
            "paused": st.booleans(),
            "engine": objects(
                parallelism=objects(tensor=st.sampled_from([1, 2, 4, 8])),
                extraArgs=extra if extra_args is None else extra_args,
                startupTimeout=st.sampled_from(["90s", "30m", "1h30m"]),
            ),
            "cache": objects(
                eviction=objects(policy=st.sampled_from([str(p) for p in EvictionPolicy])),
                pageSize=st.sampled_from([1, 16, 64]),
            ),
            "scheduling": objects(
                policy=st.sampled_from([str(p) for p in SchedulingPolicy]),
                overlap=objects(mode=st.sampled_from([str(m) for m in OverlapMode])),
            ),
            "speculative": objects(
                ngram=objects(
                    numDraftTokens=st.integers(2, 64),
                    maxTrieDepth=st.integers(2, 64),
                    minBfsBreadth=st.just(1),
                    maxBfsBreadth=st.integers(1, 16),
                    matchType=st.sampled_from([str(m) for m in MatchType]),
                    capacity=st.integers(2048, 10**8),
                )
            ),
        },
    )

from typing import Any

import pytest

from sglang_controllers.api import InvalidSpec, parse_spec
from tests.unit.controllers.api.cases import (
    BREAKS_A_RULE,
    BREAKS_A_TYPE,
    GOOD,
    MODEL,
    Bad,
    a_spec,
    engine,
    ngram,
)


def problems_of(spec: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(InvalidSpec) as refused:
        parse_spec(spec)
    return refused.value.problems


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
def test_good_specs_are_taken(spec: dict[str, Any]) -> None:
    assert parse_spec(spec).model.source == spec["model"]["source"]


@pytest.mark.parametrize("bad", BREAKS_A_RULE.values(), ids=BREAKS_A_RULE.keys())
def test_a_broken_rule_is_said_with_field_and_fix(bad: Bad) -> None:
    (problem,) = problems_of(bad.spec)

    assert problem.startswith(bad.field)
    assert bad.says in problem


@pytest.mark.parametrize("bad", BREAKS_A_TYPE.values(), ids=BREAKS_A_TYPE.keys())
def test_a_wrong_type_or_value_is_said_with_its_field(bad: Bad) -> None:
    (problem,) = problems_of(bad.spec)

    assert problem.startswith(bad.field)
    assert bad.says in problem


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (a_spec(replicas=-1), "spec.replicas: got -1; must be greater than or equal to 0"),
        (a_spec(replicas="2"), 'spec.replicas: got "2"; must be a whole number'),
        (a_spec(replicas=True), "spec.replicas: got true; must be a whole number"),
        (a_spec(model={}), "spec.model.source: is missing; add it"),
        (
            a_spec(model={"source": 7}),
            "spec.model.source: got 7; must be text; put it in quotes",
        ),
        (
            engine(startupTimeout="30"),
            (
                'spec.engine.startupTimeout: got "30"; a duration needs units (h, m or s), more than '
                '0s and at most 24h; write "30m"'
            ),
        ),
        (
            engine(sharedMemory=0.5),
            (
                'spec.engine.sharedMemory: got 0.5; must be a quantity; write "500m" for half a core, '
                '"8Gi" for 8 GiB'
            ),
        ),
        (
            ngram(matchType="bfs"),
            'spec.speculative.ngram.matchType: got "bfs"; must be one of "BFS" or "PROB"',
        ),
        (
            engine(env=[{"name": "A"}, {"name": "A"}]),
            (
                'spec.engine.env: got [{"name": "A"}, {"name": "A"}]; two items have the name "A"; '
                "remove one"
            ),
        ),
        (
            engine(env=[{"name": "A"}, {"name": "B", "value": 1}]),
            "spec.engine.env[1].value: got 1; must be text; put it in quotes",
        ),
    ],
)
def test_a_problem_is_one_sentence_of_field_value_rule_and_fix(
    spec: dict[str, Any], sentence: str
) -> None:
    assert problems_of(spec) == (sentence,)


def test_every_problem_is_told_at_once() -> None:
    spec = {
        "replicas": -1,
        "model": {"source": "x"},
        "cache": {"pageSize": 0},
        "engine": {"env": 1},
    }

    fields = [problem.split(": ")[0] for problem in problems_of(spec)]

    assert fields == [
        "spec.replicas",
        "spec.model.source",
        "spec.engine.env",
        "spec.cache.pageSize",
    ]


def test_a_long_value_is_shortened_in_its_problem() -> None:
    (problem,) = problems_of(a_spec(model={"source": "x" * 500}))

    assert len(problem) < 400


def test_unset_objects_are_empty_and_unset_values_are_none() -> None:
    spec = parse_spec(a_spec())

    assert spec.replicas == 1
    assert spec.paused is False
    assert spec.speculative.ngram is None
    assert spec.cache.eviction.policy is None
    assert spec.engine.accelerator.count is None
    assert (spec.engine.resources, spec.engine.env, spec.engine.extra_args) == ({}, [], {})
    assert spec.pod_template == {}


def test_an_empty_ngram_is_not_an_absent_one() -> None:
    assert parse_spec(ngram()).speculative.ngram is not None


def test_null_is_the_same_as_absent() -> None:
    spec = a_spec(engine=None, cache={"pageSize": None}, speculative={"ngram": None})

    assert parse_spec(spec) == parse_spec(a_spec(cache={}, speculative={}))


def test_a_null_among_resources_is_no_resource() -> None:
    resources = {"requests": None, "limits": {"cpu": None, "memory": "1Gi"}}

    assert parse_spec(engine(resources=resources)).engine.resources == resources


def test_a_whole_number_may_be_written_as_a_decimal() -> None:
    assert parse_spec(a_spec(cache={"pageSize": 16.0})).cache.page_size == 16


def test_unknown_fields_are_ignored() -> None:
    spec = a_spec(later=1, model={**MODEL, "later": {"a": 1}})

    assert parse_spec(spec).model_dump() == parse_spec(a_spec()).model_dump()


def test_kubernetes_pieces_are_passed_on_as_they_came() -> None:
    raw = GOOD["everything of an engine"]["engine"]
    template = GOOD["a pod template"]["podTemplate"]

    assert parse_spec(a_spec(engine=raw)).engine.env == raw["env"]
    assert parse_spec(a_spec(engine=raw)).engine.resources == raw["resources"]
    assert parse_spec(a_spec(podTemplate=template)).pod_template == template


def test_a_null_in_the_pod_template_stays() -> None:
    template = {"spec": {"securityContext": {"fsGroup": None}}}

    assert parse_spec(a_spec(podTemplate=template)).pod_template == template


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse_spec(a_spec()).replicas = 2

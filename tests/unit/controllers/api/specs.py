"""Builders of raw specs: each shows only what a test is about."""

from typing import Any

MODEL: dict[str, Any] = {"source": "oci://registry.example.com/smollm2:v1"}


def a_spec(**fields: Any) -> dict[str, Any]:
    """The smallest spec, with `fields` on top."""
    return {"model": dict(MODEL), **fields}


def ngram(**fields: Any) -> dict[str, Any]:
    return a_spec(speculative={"ngram": fields})


def drafting(member: str, **fields: Any) -> dict[str, Any]:
    return a_spec(speculative={member: fields})


def engine(**fields: Any) -> dict[str, Any]:
    return a_spec(engine=fields)


def template(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return a_spec(podTemplate={"spec": {"containers": list(containers), **fields}})


def warming(**fields: Any) -> dict[str, Any]:
    return a_spec(cache={"warming": fields})

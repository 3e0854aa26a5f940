"""The traps of Kopf, each with the setting or the absence that avoids it."""

import itertools
from pathlib import Path
from typing import Any

import kopf
import pytest

import sglang_operator
from sglang_controllers.names import CLUSTER_LABEL
from sglang_operator.handlers import registry
from sglang_operator.resources import CLUSTERS, WATCHED
from sglang_operator.watch import EndlessBackoffs, kopf_settings

SOURCES = sorted(Path(sglang_operator.__file__).parent.glob("*.py"))

FORBIDDEN = (
    "kopf.daemon",
    "kopf.timer",
    "kopf.index",
    "kopf.adopt",
    "kopf.on.create",
    "kopf.on.update",
    "kopf.on.resume",
    "kopf.on.delete",
    "kopf.on.field",
    "kopf.event(",
    "time.sleep",
)


@pytest.fixture
def settings() -> kopf.OperatorSettings:
    return kopf_settings()


@pytest.fixture
def handlers() -> Any:
    async def login(**_: object) -> None:
        return None

    return registry(lambda _item, _gone: None, login)


@pytest.mark.parametrize("call", FORBIDDEN)
def test_nothing_that_writes_to_objects_or_blocks_is_used(call: str) -> None:
    assert SOURCES
    assert [source.name for source in SOURCES if call in source.read_text()] == []


def test_only_event_handlers_are_registered(handlers: Any) -> None:
    assert len(handlers._watching.get_all_handlers()) == len(WATCHED)
    for others in (handlers._changing, handlers._spawning, handlers._indexing, handlers._webhooks):
        assert list(others.get_all_handlers()) == []


def test_every_watched_kind_has_its_handler(handlers: Any) -> None:
    watched = {str(handler.id) for handler in handlers._watching.get_all_handlers()}

    assert watched == {resource.plural for resource in WATCHED}


def test_every_wait_for_the_api_server_is_bounded(settings: kopf.OperatorSettings) -> None:
    assert settings.watching.server_timeout == 300
    assert settings.watching.client_timeout == 310
    assert settings.watching.connect_timeout == 10
    assert settings.networking.request_timeout == 30
    assert settings.networking.connect_timeout == 10


def test_a_watch_never_gives_up_and_never_waits_long(settings: kopf.OperatorSettings) -> None:
    delays = settings.networking.error_backoffs

    assert isinstance(delays, EndlessBackoffs)
    for _ in range(2):  # each request begins anew
        first = list(itertools.islice(iter(delays), 1000))
        assert first[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
        assert set(first[5:]) == {30.0}


def test_kopf_posts_no_events_and_watches_no_other_kinds(settings: kopf.OperatorSettings) -> None:
    assert settings.posting.enabled is False
    assert settings.scanning.disabled is True


def test_no_limit_of_workers_can_deadlock(settings: kopf.OperatorSettings) -> None:
    assert settings.queueing.worker_limit is None


def test_kopf_does_not_kill_the_process(settings: kopf.OperatorSettings) -> None:
    assert settings.process.ultimate_exiting_timeout is None


def test_the_api_server_selects_what_is_ours(settings: kopf.OperatorSettings) -> None:
    selectors = settings.watching.label_selectors

    ours = [r for r in WATCHED if r is not CLUSTERS]
    assert [selectors[r.group, r.version, r.plural] for r in ours] == [CLUSTER_LABEL] * len(ours)
    assert len(selectors) == len(ours)

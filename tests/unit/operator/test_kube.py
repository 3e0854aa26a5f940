"""The client against a real HTTP server: paths, refusals, and answers that do not come."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from sglang_operator import kube as module
from sglang_operator.kube import ApiError, Kube, NetworkError
from sglang_operator.resources import BY_KIND, CLUSTERS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SERVICES = BY_KIND["Service"]


class Server:
    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self.handler: Handler = self._ok

    async def _ok(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Service"})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.seen.append(request)
        return await self.handler(request)


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, Kube]]:
    serving = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serving.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with Kube(Configuration(host=host, api_key={"BearerToken": "Bearer t0ken"})) as client:
        yield serving, client
    await runner.cleanup()


async def test_requests_carry_who_asks(server: tuple[Server, Kube]) -> None:
    serving, client = server
    await client.get(SERVICES, "team", "chat")

    request = serving.seen[0]
    assert request.path == "/api/v1/namespaces/team/services/chat"
    assert request.headers["Authorization"] == "Bearer t0ken"
    assert request.headers["User-Agent"] == "sglang-operator"


async def test_an_apply_is_forced_under_our_name(server: tuple[Server, Kube]) -> None:
    serving, client = server
    manifest = {"metadata": {"namespace": "team", "name": "chat"}}
    await client.apply(CLUSTERS, manifest, "status")

    request = serving.seen[0]
    assert request.method == "PATCH"
    assert request.path == "/apis/sglang.dev/v1alpha1/namespaces/team/sglangclusters/chat/status"
    assert dict(request.query) == {"fieldManager": "sglang-operator", "force": "true"}
    assert request.content_type == "application/apply-patch+yaml"
    assert await request.json() == manifest


async def test_a_creation_refuses_unknown_fields(server: tuple[Server, Kube]) -> None:
    serving, client = server
    await client.create(SERVICES, {"metadata": {"namespace": "team", "name": "chat"}})

    assert serving.seen[0].query["fieldValidation"] == "Strict"


async def test_a_refusal_has_its_status_reason_and_message(server: tuple[Server, Kube]) -> None:
    serving, client = server
    body = {"kind": "Status", "reason": "Invalid", "message": "spec.a: wrong", "code": 422}

    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=422)

    serving.handler = refuse
    with pytest.raises(ApiError) as refused:
        await client.get(SERVICES, "team", "chat")

    error = refused.value
    assert (error.status, error.reason, error.message) == (422, "Invalid", "spec.a: wrong")
    assert not error.may_pass


@pytest.mark.parametrize(
    ("status", "may_pass"),
    [(400, False), (401, True), (403, False), (404, False), (409, False), (429, True), (503, True)],
)
async def test_a_refusal_by_something_else_is_one_too(
    server: tuple[Server, Kube], status: int, may_pass: bool
) -> None:
    serving, client = server

    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>" + "x" * 5000, status=status)

    serving.handler = refuse
    with pytest.raises(ApiError) as refused:
        await client.get(SERVICES, "team", "chat")

    assert refused.value.may_pass is may_pass
    assert len(refused.value.message) <= 200


async def test_an_answer_that_does_not_come_is_not_waited_for(
    server: tuple[Server, Kube], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, client = server
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 0.1)

    async def hang(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"kind": ')
        while request.transport and not request.transport.is_closing():
            await response.write(b" ")
        return response

    serving.handler = hang
    with pytest.raises(NetworkError, match="GET /api/v1/namespaces/team/services/chat"):
        await client.get(SERVICES, "team", "chat")


async def test_a_connection_that_ends_too_early_is_no_answer(server: tuple[Server, Kube]) -> None:
    serving, client = server

    async def drop(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    serving.handler = drop
    with pytest.raises(NetworkError):
        await client.get(SERVICES, "team", "chat")


async def test_nobody_listening_is_no_answer() -> None:
    async with Kube(Configuration(host="http://127.0.0.1:1")) as client:
        with pytest.raises(NetworkError):
            await client.get(SERVICES, "team", "chat")


CONFIG_MAPS = BY_KIND["ConfigMap"]


def an_event(kind: str, version: int, padding: str = "") -> bytes:
    metadata = {"name": "prompts", "resourceVersion": str(version), "annotations": {"a": padding}}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


def streams(*chunks: bytes) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        return response

    return answer


async def watched(client: Kube) -> list[tuple[str, int]]:
    return [
        (event["type"], int(event["object"]["metadata"]["resourceVersion"]))
        async for event in client.watch_metadata(CONFIG_MAPS, "team", 7)
    ]


async def test_metadata_is_asked_for_without_content(server: tuple[Server, Kube]) -> None:
    serving, client = server
    about = {"name": "a", "namespace": "team", "resourceVersion": "3"}
    annotated = {**about, "annotations": {"a": "x" * 1000}}
    items = [{"kind": "PartialObjectMetadata", "metadata": annotated}]
    page = {"metadata": {"resourceVersion": "9"}, "items": items}

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(page)

    serving.handler = answer
    listing = await client.list_metadata(CONFIG_MAPS, None)

    assert "as=PartialObjectMetadataList" in serving.seen[0].headers["Accept"]
    assert (listing.version, listing.items[0]["kind"]) == (9, "ConfigMap")
    assert listing.items[0]["metadata"] == about


async def test_a_watch_begins_after_a_version_and_is_bounded(server: tuple[Server, Kube]) -> None:
    serving, client = server
    serving.handler = streams()

    assert await watched(client) == []
    request = serving.seen[0]
    assert "as=PartialObjectMetadata;" in request.headers["Accept"]
    assert dict(request.query) == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }


async def test_events_are_read_however_they_are_cut(server: tuple[Server, Kube]) -> None:
    serving, client = server
    whole = an_event("ADDED", 8) + an_event("MODIFIED", 9, "x" * 300_000) + an_event("DELETED", 10)
    serving.handler = streams(*(whole[i : i + 70_001] for i in range(0, len(whole), 70_001)))

    assert await watched(client) == [("ADDED", 8), ("MODIFIED", 9), ("DELETED", 10)]


async def test_an_error_in_a_watch_has_its_code(server: tuple[Server, Kube]) -> None:
    serving, client = server
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    told = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    serving.handler = streams(an_event("ADDED", 8), told)

    with pytest.raises(ApiError) as refused:
        await watched(client)

    assert (refused.value.status, refused.value.reason) == (410, "Expired")


async def test_a_watch_that_is_refused_is_a_refusal(server: tuple[Server, Kube]) -> None:
    serving, client = server

    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "reason": "Forbidden"}, status=403)

    serving.handler = refuse
    with pytest.raises(ApiError, match="403 Forbidden"):
        await watched(client)


async def test_a_watch_without_end_of_line_is_given_up(
    server: tuple[Server, Kube], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, client = server
    monkeypatch.setattr(module, "LONGEST_EVENT", 100_000)
    serving.handler = streams(b"x" * 200_000)

    with pytest.raises(NetworkError, match="an event has more than"):
        await watched(client)


async def test_a_silent_watch_is_given_up(
    server: tuple[Server, Kube], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, client = server
    monkeypatch.setattr(module, "WATCH_LIMITS", aiohttp.ClientTimeout(sock_read=0.1))

    async def hang(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    serving.handler = hang
    with pytest.raises(NetworkError):
        await watched(client)


def test_a_webhook_that_does_not_answer_is_somebodys_business_though_it_is_a_500() -> None:
    said = 'Internal error occurred: failed calling webhook "x": no endpoints available'

    assert not ApiError(500, "InternalError", said).may_pass
    assert ApiError(500, "InternalError", "etcdserver: request timed out").may_pass

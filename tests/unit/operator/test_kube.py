"""The client against a real HTTP server: paths, refusals, and answers that do not come."""

from collections.abc import AsyncIterator, Awaitable, Callable

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


def test_a_webhook_that_does_not_answer_is_somebodys_business_though_it_is_a_500() -> None:
    said = 'Internal error occurred: failed calling webhook "x": no endpoints available'

    assert not ApiError(500, "InternalError", said).may_pass
    assert ApiError(500, "InternalError", "etcdserver: request timed out").may_pass

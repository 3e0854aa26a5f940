"""A thin client of the Kubernetes API: dicts in, dicts out, every request bounded in time.

Authentication, TLS and token refresh are those of the official client. Its typed and dynamic
layers are left out: they cost three times the CPU time of a request and add nothing to dicts.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import FIELD_MANAGER
from sglang_controllers.refusals import WEBHOOK_FAILS
from sglang_operator.resources import Resource

CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 30.0
PAGE_SIZE = 500

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

WATCH_S = 300
"""Server-side limit of a watch."""

SILENCE_S = 90.0
"""The API server sends a bookmark about every minute. What is silent for longer may be dead."""

LONGEST_EVENT = 4 * 1024 * 1024
"""Bytes. Annotations alone may have 256 KiB."""


class KubeError(Exception):
    """A request that did not succeed."""


class NotConfiguredError(KubeError):
    """No API server is known: neither a service account nor a usable kubeconfig."""


class NetworkError(KubeError):
    """No answer: whether the request was carried out is unknown."""


class ApiError(KubeError):
    """The API server's refusal."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def may_pass(self) -> bool:
        """Whether the same request can succeed later with nothing changed by a user."""
        if WEBHOOK_FAILS in self.message:  # a 500, but somebody has to see to it
            return False
        return self.status >= 500 or self.status in (401, 408, 429)


WATCH_LIMITS = aiohttp.ClientTimeout(
    total=WATCH_S + CONNECT_TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S, sock_read=SILENCE_S
)


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: object = None
    content_type: str = JSON
    accept: str = JSON
    limits: aiohttp.ClientTimeout | None = None
    """None: those of a request that is answered at once."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole list. `version` is the moment it shows: later objects are not in it."""

    items: tuple[Manifest, ...]
    version: int


async def load_configuration(kubeconfig: Path | None) -> Configuration:
    """Where the API server is and who we are: the pod's service account, or a kubeconfig."""
    configuration = Configuration()
    try:
        if kubeconfig is None:
            try:
                load_incluster_config(  # type: ignore[no-untyped-call]
                    client_configuration=configuration
                )
            except ConfigException:
                await load_kube_config(  # type: ignore[no-untyped-call]
                    client_configuration=configuration
                )
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=str(kubeconfig), client_configuration=configuration
            )
    except (ConfigException, OSError) as error:
        raise NotConfiguredError(
            f"no Kubernetes API server is configured: {error}; set KUBECONFIG or run in a pod"
        ) from error
    return configuration


class Kube:
    """The operations of the API that the operator uses, on one API server."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._rest = RESTClientObject(configuration)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._rest.close()

    async def get(self, resource: Resource, namespace: str, name: str) -> Manifest:
        return await self.request("GET", resource.path(namespace, name))

    async def list_all(
        self, resource: Resource, namespace: str | None, *, selectors: Mapping[str, str]
    ) -> Listing:
        """Every object that the selectors (labelSelector, fieldSelector) leave, page by page."""

        async def page(query: Mapping[str, str]) -> Manifest:
            return await self.request("GET", resource.path(namespace), query=query)

        return await _listing(resource, selectors, page)

    async def list_metadata(self, resource: Resource, namespace: str | None) -> Listing:
        """Every object, and of each no more than its name, namespace and version.

        There may be very many, and each may have annotations of 256 KiB.
        """

        async def page(query: Mapping[str, str]) -> Manifest:
            call = _Call("GET", resource.path(namespace), query, accept=METADATA_LIST)
            found = await self._parsed(call)
            return {**found, "items": [_known_by(item) for item in found.get("items") or ()]}

        return await _listing(resource, {}, page)

    async def watch_metadata(
        self, resource: Resource, namespace: str | None, version: int
    ) -> AsyncIterator[Manifest]:
        """Events since a version, of no more than objects' metadata, until the watch is over.

        An ApiError of status 410: what happened since then is not known any more.
        """
        query = {
            "watch": "true",
            "resourceVersion": str(version),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        call = _Call("GET", resource.path(namespace), query, accept=METADATA, limits=WATCH_LIMITS)
        async with self._answer(call) as answer:
            if answer.status != 200:
                raise _refusal(answer.status, await answer.read())
            async for line in _lines(answer.content):
                event: Manifest = json.loads(line)
                if event["type"] == "ERROR":
                    told = event["object"]
                    raise _refusal(int(told.get("code") or 500), json.dumps(told).encode())
                yield event

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        """POST. Unknown fields are refused: dropped silently, a typing error would be hidden."""
        return await self.request(
            "POST",
            resource.path(manifest["metadata"]["namespace"]),
            query={"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"},
            body=manifest,
        )

    async def apply(
        self, resource: Resource, manifest: Manifest, subresource: str = ""
    ) -> Manifest:
        """Server-side apply that takes contested fields over."""
        metadata = manifest["metadata"]
        return await self.request(
            "PATCH",
            resource.path(metadata["namespace"], metadata["name"], subresource),
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            body=manifest,
            content_type=APPLY_PATCH,
        )

    async def replace(self, resource: Resource, manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        return await self.request(
            "PUT", resource.path(metadata["namespace"], metadata["name"]), body=manifest
        )

    async def patch(
        self, resource: Resource, namespace: str, name: str, patch: object, content_type: str
    ) -> Manifest:
        return await self.request(
            "PATCH",
            resource.path(namespace, name),
            query={"fieldManager": FIELD_MANAGER},
            body=patch,
            content_type=content_type,
        )

    async def delete(self, resource: Resource, namespace: str, name: str, uid: str) -> Manifest:
        """Delete that very object, its dependents in the background."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        return await self.request("DELETE", resource.path(namespace, name), body=options)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> Manifest:
        """The parsed answer; ApiError when refused, NetworkError when there is none."""
        return await self._parsed(_Call(method, path, query, body, content_type))

    async def _parsed(self, call: _Call) -> Manifest:
        async with self._answer(call) as answer:
            payload = await answer.read()
        if not 200 <= answer.status <= 299:
            raise _refusal(answer.status, payload)
        parsed: Manifest = json.loads(payload)
        return parsed

    @asynccontextmanager
    async def _answer(self, call: _Call) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is still to be read. NetworkError also for what fails while it is."""
        query = f"?{urlencode(call.query)}" if call.query else ""
        headers = {
            "Accept": call.accept,
            "Content-Type": call.content_type,
            "User-Agent": FIELD_MANAGER,
        }
        try:
            token = await self.configuration.get_api_key_with_prefix("BearerToken")
            if token:
                headers["Authorization"] = token
            answer = await self._rest.request(  # type: ignore[no-untyped-call]
                call.method,
                self.configuration.host + call.path + query,
                headers=headers,
                body=call.body,
                _request_timeout=call.limits or _request_limits(),
            )
            async with answer.response as response:
                yield response
        except (aiohttp.ClientError, OSError, ConfigException) as error:
            told = error or type(error).__name__
            raise NetworkError(f"{call.method} {call.path}: {told}") from error


def _request_limits() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S)


Page = Callable[[Mapping[str, str]], Awaitable[Manifest]]
"""One page of a list, by its query."""


async def _listing(resource: Resource, selectors: Mapping[str, str], page_of: Page) -> Listing:
    items: list[Manifest] = []
    # Items of a list come without their kind, or with that of the form they are in.
    about = {"apiVersion": resource.api_version, "kind": resource.kind}
    token = ""
    while True:
        query = {**selectors, "limit": str(PAGE_SIZE)}
        if token:
            query["continue"] = token
        page = await page_of(query)
        items += [{**item, **about} for item in page.get("items") or ()]
        token = page["metadata"].get("continue") or ""
        if not token:
            return Listing(tuple(items), int(page["metadata"]["resourceVersion"]))


def _known_by(item: Manifest) -> Manifest:
    names = ("name", "namespace", "resourceVersion")
    return {"metadata": {name: item["metadata"].get(name, "") for name in names}}


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length up to LONGEST_EVENT."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST_EVENT:
            raise aiohttp.ClientPayloadError(f"an event has more than {LONGEST_EVENT} bytes")
        for line in lines:
            yield line


def _refusal(status: int, payload: bytes) -> ApiError:
    """The error in a Status object, or the first of the text where a proxy answered."""
    try:
        parsed: Any = json.loads(payload)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict) and parsed.get("kind") == "Status":
        return ApiError(status, str(parsed.get("reason", "")), str(parsed.get("message", "")))
    return ApiError(status, "", payload[:200].decode(errors="replace"))

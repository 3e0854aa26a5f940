"""Keeps Kopf's watches running: started when there is something to watch, restarted when they end.

Kopf ends as a whole when one of its watches meets an error it does not expect (kopf#1276). Its way
of ending cancels every task of the event loop it runs in, and it takes the process's signals when
it starts in the main thread: it has a thread and a loop of its own.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import kopf

from sglang_controllers.manifest import Manifest
from sglang_operator.handlers import Seen, registry
from sglang_operator.kube import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, ApiError, Kube, KubeError
from sglang_operator.resources import CLUSTERS, WATCHED

log = logging.getLogger(__name__)

SERVER_TIMEOUT_S = 300
"""Server-side limit of a watch. Without one, a dead connection goes unnoticed (kopf#585)."""

CLIENT_TIMEOUT_S = 310
CRD_POLL_S = 2.0
STOP_S = 5.0
CLOSE_S = 0.05
"""Some turns of the loop, in which connections that were told to close do so."""

LONGEST_BACKOFF_S = 30.0


class EndlessBackoffs:
    """Delays for repeated requests that double up to a limit and never run out.

    With Kopf's own, finite list a watch gives up after a minute without an API server.
    """

    def __iter__(self) -> Iterator[float]:
        delay_s = 1.0
        while True:
            yield delay_s
            delay_s = min(delay_s * 2, LONGEST_BACKOFF_S)


def kopf_settings() -> kopf.OperatorSettings:
    """Watch, and nothing else."""
    settings = kopf.OperatorSettings()
    settings.watching.server_timeout = SERVER_TIMEOUT_S
    settings.watching.client_timeout = CLIENT_TIMEOUT_S
    settings.watching.connect_timeout = CONNECT_TIMEOUT_S
    settings.networking.connect_timeout = CONNECT_TIMEOUT_S
    settings.networking.request_timeout = REQUEST_TIMEOUT_S
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.posting.enabled = False
    # Kinds are fixed and namespaces are given: no need for rights on either. The one resource that
    # may appear late, ours, is waited for below.
    settings.scanning.disabled = True
    settings.queueing.worker_limit = None  # a limit below the number of objects can deadlock
    settings.process.ultimate_exiting_timeout = None  # it would kill the process from a timer
    for resource in WATCHED:
        if resource.label_selector:
            place = (resource.group, resource.version, resource.plural)
            settings.watching.label_selectors[place] = resource.label_selector
    return settings


async def login(kube: Kube) -> kopf.ConnectionInfo:
    """Kopf uses the credentials that our own client has, and asks again when they are refused."""
    configuration = kube.configuration
    header = await configuration.get_api_key_with_prefix("BearerToken")
    scheme, _, token = (header or "").rpartition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        ca_data=configuration.ca_cert_data,
        insecure=not configuration.verify_ssl,
        scheme=scheme or None,
        token=token or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        proxy_url=configuration.proxy,
    )


class Watches:
    """`seen` and `restarted` are called in the event loop that runs this.

    `restarted` is told of every end of the watches that nobody asked for.
    """

    def __init__(
        self,
        kube: Kube,
        namespaces: Collection[str],
        seen: Seen,
        restarted: Callable[[], None] = lambda: None,
    ) -> None:
        self._kube = kube
        self._namespaces = namespaces
        self._seen = seen
        self._restarted = restarted

    async def run(self) -> None:
        """Watch for ever."""
        backoffs = iter(EndlessBackoffs())
        loop = asyncio.get_running_loop()
        while True:
            await self._crd_exists()
            started = loop.time()
            await self._one_life()
            self._restarted()
            if loop.time() - started > LONGEST_BACKOFF_S:
                backoffs = iter(EndlessBackoffs())
            delay_s = next(backoffs)
            log.error("watches ended, starting again in %.0f s", delay_s)
            await asyncio.sleep(delay_s)

    async def _crd_exists(self) -> None:
        """Wait for our API. Discovery needs no rights on CustomResourceDefinitions."""
        path = f"/apis/{CLUSTERS.group}/{CLUSTERS.version}"
        told = False
        while True:
            try:
                found = await self._kube.request("GET", path)
                if any(r["name"] == CLUSTERS.plural for r in found.get("resources", ())):
                    return
                missing = f"{CLUSTERS.group}/{CLUSTERS.version} has no {CLUSTERS.plural}"
            except ApiError as error:
                missing = f"{CLUSTERS.plural}.{CLUSTERS.group} is not installed ({error.status})"
            except KubeError as error:
                missing = f"the API server cannot be reached: {error}"
            if not told:
                log.warning("waiting for the CustomResourceDefinition: %s", missing)
                told = True
            await asyncio.sleep(CRD_POLL_S)

    async def _one_life(self) -> None:
        """Run Kopf in a thread until it ends, or until this task is cancelled."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        stop: Future[Callable[[], None]] = Future()

        def live() -> None:
            try:
                asyncio.run(self._kopf(loop, stop))
            except Exception:
                log.exception("Kopf failed")
            with suppress(RuntimeError):  # the other loop is over: nobody waits
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=live, name="kopf", daemon=True).start()
        try:
            await ended.wait()
        finally:
            stop.add_done_callback(lambda ready: ready.result()())
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await ended.wait()
            if not ended.is_set():
                log.error("Kopf does not stop; its thread is left behind")

    async def _kopf(
        self, home: asyncio.AbstractEventLoop, stop: "Future[Callable[[], None]]"
    ) -> None:
        """Kopf's main coroutine. `stop` is given what ends it, to be called from any thread."""
        here = asyncio.get_running_loop()
        flag = asyncio.Event()

        def end() -> None:
            with suppress(RuntimeError):  # it has ended already
                here.call_soon_threadsafe(flag.set)

        def seen(item: Manifest, gone: bool) -> None:
            with suppress(RuntimeError):  # the operator has ended and left this thread behind
                home.call_soon_threadsafe(self._seen, item, gone)

        async def log_in(**_: Any) -> kopf.ConnectionInfo:
            return await login(self._kube)

        stop.set_result(end)
        await kopf.operator(
            registry=registry(seen, log_in),
            settings=kopf_settings(),
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=list(self._namespaces),
            stop_flag=flag,
        )
        await asyncio.sleep(CLOSE_S)

"""The router's launcher as a process of its own, with stand-ins for engines and their pods."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from sglang_controllers.api.router import Router as RouterSpec
from sglang_controllers.resources.metadata import selector
from sglang_controllers.resources.router_deployment import router_arguments
from sglang_controllers.resources.subject import Subject
from sglang_operator.kube import MERGE_PATCH, Kube
from sglang_operator.resources import PODS
from tests.integration.control_plane import free_port
from tests.integration.router_engine import MODEL, PORT
from tests.integration.world import until

KEY = "sesame"
SELECTOR = selector(Subject("", "chat", ""))


class Router:
    """Can be killed and started again at its ports."""

    def __init__(self, kubeconfig: Path, namespace: str, log: Path, *more: str) -> None:
        self.port, self.list_port, metrics_port = free_port(), free_port(), free_port()
        self.log = log
        self.kubeconfig = kubeconfig
        engines = Subject(namespace, "chat", "uid")
        self._arguments = (
            *router_arguments(engines, RouterSpec(), 120),
            "--host=127.0.0.1",
            f"--port={self.port}",
            "--prometheus-host=127.0.0.1",
            f"--prometheus-port={metrics_port}",
            *more,
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {
            "KUBECONFIG": str(self.kubeconfig),
            "SGLANG_ROUTER_API_KEY": KEY,
            "SGLANG_ROUTER_LIST_PORT": str(self.list_port),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sglang_router_launcher", *self._arguments],
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def wait(self) -> int:
        assert self.process
        return self.process.wait()

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    async def ask(
        self, path: str, *, method: str = "GET", key: str = "", body: Any = None
    ) -> tuple[int, str]:
        """Smg itself. Status 0: it does not answer."""
        return await _ask(f"http://127.0.0.1:{self.port}{path}", method, key, body)

    async def listing(self) -> tuple[int, str]:
        """The worker list for the operator."""
        return await _ask(f"http://127.0.0.1:{self.list_port}/workers", "GET", "", None)

    async def healthy(self) -> frozenset[str]:
        """URLs of the healthy workers; none where the router does not answer."""
        status, text = await self.listing()
        if status != 200:
            return frozenset()
        return frozenset(w["url"] for w in json.loads(text)["workers"] if w["healthy"])

    async def until_healthy(self, *urls: str) -> float:
        async def seen() -> bool:
            return await self.healthy() == frozenset(urls)

        async def told() -> str:
            return "\n".join([str(await self.listing()), self.log.read_text()[-3000:]])

        return await until(seen, f"the router knows {sorted(urls)}", told)

    async def chat(self, tokens: int = 1) -> tuple[int, str]:
        """A client's request, which takes 0.1 s for each token but the first."""
        message = {"role": "user", "content": "hello"}
        body = {"model": MODEL, "messages": [message], "max_tokens": tokens}
        return await self.ask("/v1/chat/completions", method="POST", key=KEY, body=body)


async def _ask(url: str, method: str, key: str, body: Any) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as client,
            client.request(method, url, headers=headers, json=body) as answer,
        ):
            return answer.status, await answer.text()
    except aiohttp.ClientConnectionError:
        return 0, ""


@contextmanager
def router(kubeconfig: Path, namespace: str, folder: Path, *more: str) -> Iterator[Router]:
    running = Router(kubeconfig, namespace, folder / "router.log", *more)
    running.start()
    try:
        yield running
    finally:
        running.send_signal(signal.SIGCONT)
        running.kill()


class Engine:
    """A stand-in at an address of its own, as each pod has one."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.url = f"http://{address}:{PORT}"
        self._counted = folder / address
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        script = Path(__file__).with_name("router_engine.py")
        self._process = subprocess.Popen(
            [sys.executable, "-S", str(script), self.address, str(self._counted)]
        )

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hang(self) -> None:
        """It accepts connections, as the kernel does that, and says nothing."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def requests(self) -> int:
        """Of clients, as far as they reached it."""
        return len(self._counted.read_text().splitlines()) if self._counted.exists() else 0

    async def until_listening(self) -> None:
        async def listening() -> bool:
            return (await _ask(f"{self.url}/ready", "GET", "", None))[0] == 200

        await until(listening, f"{self.url} listens")


@contextmanager
def engines(count: int, folder: Path) -> Iterator[list[Engine]]:
    # Away from where other tests listen, and not always the same: a killed run leaves its own.
    network = random.randrange(16, 240)
    made = [Engine(f"127.0.{network}.{number + 1}", folder) for number in range(count)]
    for engine in made:
        engine.start()
    try:
        yield made
    finally:
        for engine in made:
            engine.kill()


@dataclass(frozen=True, slots=True)
class Pods:
    """What a kubelet and a Deployment do to engines' pods."""

    kube: Kube
    namespace: str

    async def create(self, name: str, address: str, *, ready: bool = True) -> None:
        # The finalizer keeps a deleted pod, as a kubelet keeps it until its containers have ended.
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "labels": SELECTOR,
            "finalizers": ["sglang.dev/test"],
        }
        spec = {"containers": [{"name": "engine", "image": "none"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await self.kube.create(PODS, body)
        await self.set_ready(name, address, ready)

    async def set_ready(self, name: str, address: str, ready: bool) -> None:
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": str(ready)}],
        }
        await self._patch(name, {"status": status}, "status")

    async def delete(self, name: str) -> None:
        """It stays, with a deletionTimestamp."""
        await self.kube.request("DELETE", PODS.path(self.namespace, name))

    async def let_go(self, name: str) -> None:
        await self._patch(name, {"metadata": {"finalizers": None}}, "")

    async def _patch(self, name: str, body: dict[str, Any], subresource: str) -> None:
        path = PODS.path(self.namespace, name, subresource)
        await self.kube.request("PATCH", path, body=body, content_type=MERGE_PATCH)

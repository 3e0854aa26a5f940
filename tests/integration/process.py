"""The command `sglang-operator run` as a process of its own."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.integration.control_plane import free_port
from tests.integration.world import World, until


class Process:
    """A running operator."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self._port = port

    async def status(self, path: str) -> int:
        """HTTP status of a health endpoint, 0 where nothing listens."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self._port}/{path}") as answer,
            ):
                return answer.status
        except aiohttp.ClientError:
            return 0

    async def metrics(self) -> dict[str, float]:
        """Each sample by its name and labels."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self._port}/metrics") as answer,
        ):
            lines = (await answer.text()).splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def memory_mib(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    async def until_status(self, path: str, wanted: int) -> None:
        async def seen() -> bool:
            return await self.status(path) == wanted

        await until(seen, f"/{path} answers {wanted}")

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def operator_process(world: World, *options: str) -> AsyncIterator[Process]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sglang_operator",
        "run",
        f"--namespace={world.namespace}",
        f"--lease-namespace={world.namespace}",
        f"--health-port={port}",
        "--resync=2",
        *options,
        env={**os.environ, "KUBECONFIG": str(world.kubeconfig)},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Process(process, port)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()

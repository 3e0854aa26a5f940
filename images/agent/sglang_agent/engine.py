"""The engine's HTTP, as the agent asks it. Every failure is a value: the engine may well be down."""

from dataclasses import dataclass

import aiohttp

from sglang_agent.load import (
    LOADS_PATH,
    METRICS_PATH,
    UnknownLoadError,
    held_by_scheduler,
    open_requests,
)

READY_TIMEOUT_S = 25.0
"""A process that is starved of CPU, or loads a model, is slow even to say so."""

LOOK_TIMEOUT_S = 5.0


class EngineError(Exception):
    """The engine did not answer, or not with 200. The text says what it did."""


class RefusedError(EngineError):
    """Nothing listens at the engine's port."""


@dataclass(frozen=True, slots=True)
class Load:
    """`in_flight` None: unknown, because of `problem`."""

    in_flight: int | None
    problem: str = ""


class Engine:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def ready(self) -> None:
        """Return when the engine takes requests, raise EngineError otherwise."""
        await self._get("/ready", READY_TIMEOUT_S)

    async def load(self, *, with_open_requests: bool) -> Load:
        """What is in flight. Where nothing listens nobody is owed anything."""
        try:
            in_flight = held_by_scheduler(await self._get(LOADS_PATH, LOOK_TIMEOUT_S))
            if with_open_requests:
                answer = await self._get(METRICS_PATH, LOOK_TIMEOUT_S)
                in_flight = max(in_flight, open_requests(answer))
        except RefusedError:
            return Load(0)
        except (EngineError, UnknownLoadError) as error:
            return Load(None, str(error))
        return Load(in_flight)

    async def _get(self, path: str, timeout_s: float) -> str:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.get(
                self._url + path, timeout=timeout, allow_redirects=False
            ) as answer:
                text = await answer.text()
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, ConnectionRefusedError):
                raise RefusedError(f"nothing listens at {self._url}") from error
            raise EngineError(f"{self._url} cannot be reached: {error.os_error}") from error
        except TimeoutError as error:
            raise EngineError(f"{path} did not answer within {timeout_s:g} s") from error
        except (aiohttp.ClientError, UnicodeDecodeError) as error:
            raise EngineError(f"{path}: the connection broke: {error!r}") from error
        if answer.status != 200:
            raise EngineError(f"{path} answers {answer.status}")
        return text

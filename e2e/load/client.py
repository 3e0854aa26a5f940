"""A steady load on an OpenAI-compatible server: `client.py '{"url": ..., "model": ...}'`.

First, as fast as `workers` can, to measure what the server can do; then at `share` of that, at even
distances, whether or not earlier requests have ended. Every request has a twin of the other client:
the OpenAI SDK at its defaults, and a raw client that keeps connections and never tries again.

Standard output has one JSON object a line: what was measured, every request when it has ended, and
each second how many still wait. SIGTERM ends the load, as soon as all requests have ended.
Runs in a pod, of the engine's image: nothing here but Python, openai and aiohttp.
"""

import asyncio
import dataclasses
import itertools
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import openai

UNANSWERED_S = 600
"""The SDK's default. Nothing that is not lost takes so long."""

BEAT_S = 1.0
SETTLE_S = 2.0
REACHABLE_S = 30.0
"""A node takes a moment to send connections to a Service's first endpoint."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """`share` of the measured capacity, but never more than `most` requests a second."""

    url: str
    model: str
    share: float = 0.4
    most: float = 8.0
    measure_s: float = 10.0
    workers: int = 8
    short: int = 8
    long: int = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """A request. All tokens come, whatever the model says, so that a lost one shows."""

    client: str
    stream: bool
    tokens: int


@dataclasses.dataclass(slots=True)
class Answer:
    """What has come until now."""

    begun: bool = False
    tokens: int | None = None
    finish: str | None = None
    done: bool = False
    retries: int = 0

    def take(self, part: dict[str, Any]) -> None:
        """A whole answer, or an event of a stream."""
        self.begun = True
        if "error" in part:
            raise ValueError(f"error event: {json.dumps(part['error'])[:200]}")
        self.tokens = (part.get("usage") or {}).get("completion_tokens", self.tokens)
        for choice in part.get("choices") or []:
            self.finish = choice.get("finish_reason") or self.finish

    def missing(self, wanted: Wanted) -> str:
        """What it lacks now that it has ended; nothing when it is whole."""
        if not self.done:
            return "the stream ended without [DONE]"
        if self.finish != "length" or self.tokens != wanted.tokens:
            return f"ended with {self.tokens} of {wanted.tokens} tokens, finish {self.finish}"
        return ""


Ask = Callable[[Wanted, int, Answer], Awaitable[None]]


def body(settings: Settings, wanted: Wanted, number: int) -> dict[str, Any]:
    question = f"request {number}: tell me a story"
    return {
        "model": settings.model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": wanted.tokens,
        "temperature": 0,
        "stream": wanted.stream,
    } | ({"stream_options": {"include_usage": True}} if wanted.stream else {})


def sdk(settings: Settings, client: openai.AsyncOpenAI) -> Ask:
    """The OpenAI SDK as it comes. It does not tell an end with [DONE] from one without."""

    async def ask(wanted: Wanted, number: int, answer: Answer) -> None:
        response = await client.chat.completions.with_raw_response.create(
            **body(settings, wanted, number), extra_body={"ignore_eos": True}
        )
        answer.retries = response.retries_taken
        parsed = response.parse()
        if wanted.stream:
            async for event in parsed:
                answer.take(event.model_dump())
        else:
            answer.take(parsed.model_dump())
        answer.done = True

    return ask


def raw(settings: Settings, session: aiohttp.ClientSession) -> Ask:
    """A client that keeps connections open and tries nothing twice."""

    async def ask(wanted: Wanted, number: int, answer: Answer) -> None:
        payload = body(settings, wanted, number) | {"ignore_eos": True}
        url = f"{settings.url}/chat/completions"
        async with session.post(url, json=payload) as response:
            if response.status != 200:
                raise ValueError(f"{response.status}: {(await response.text())[:200]}")
            if not wanted.stream:
                answer.take(await response.json())
                answer.done = True
                return
            async for line in response.content:
                text = line.decode().strip()
                if text == "data: [DONE]":
                    answer.done = True
                elif text.startswith("data: "):
                    answer.take(json.loads(text[6:]))

    return ask


class Load:
    def __init__(self, settings: Settings, clients: dict[str, Ask]) -> None:
        self._settings = settings
        self._clients = clients
        self._open: dict[int, float] = {}
        self._numbers = itertools.count()

    def mix(self) -> Iterator[Wanted]:
        """Streaming and not, three short to one long, each by both clients one after the other."""
        short, long = self._settings.short, self._settings.long
        return itertools.cycle(
            Wanted(client, stream, tokens)
            for tokens in (short, short, long, short)
            for stream in (True, False)
            for client in self._clients
        )

    async def one(self, wanted: Wanted) -> None:
        number, start, answer = next(self._numbers), time.time(), Answer()
        self._open[number] = start
        try:
            await self._clients[wanted.client](wanted, number, answer)
            error = answer.missing(wanted)
        except Exception as failure:  # noqa: BLE001  whatever it is, it is counted
            error = f"{type(failure).__name__}: {failure}"[:300]
        del self._open[number]
        failed = "truncated" if answer.begun else "failed"
        say(
            request=number,
            **dataclasses.asdict(wanted),
            start=start,
            end=time.time(),
            outcome=failed if error else "ok",
            error=error,
            got=answer.tokens,
            retries=answer.retries,
        )

    async def capacity(self) -> float:
        """Requests a second when all workers are always busy."""
        settings, mix, ended = self._settings, self.mix(), 0
        over = time.monotonic() + settings.measure_s
        start = time.monotonic()

        async def worker() -> None:
            nonlocal ended
            while time.monotonic() < over:
                await self.one(next(mix))
                ended += 1

        await asyncio.gather(*(worker() for _ in range(settings.workers)))
        return ended / (time.monotonic() - start)

    async def steady(self, rate: float) -> None:
        """Requests at even distances until there is a reason to stop, and their ends."""
        mix, over = self.mix(), asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
        async with asyncio.TaskGroup() as tasks:
            beat = tasks.create_task(self._beat())
            due = time.monotonic()
            requests = set()
            while not over.is_set():
                task = tasks.create_task(self.one(next(mix)))
                requests.add(task)
                task.add_done_callback(requests.discard)
                due += 1 / rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            await asyncio.gather(*requests)
            beat.cancel()

    async def _beat(self) -> None:
        while True:
            say(
                now=time.time(),
                waiting=len(self._open),
                oldest=min(self._open.values(), default=None),
            )
            await asyncio.sleep(BEAT_S)


async def reachable(url: str, session: aiohttp.ClientSession) -> None:
    """Return when somebody listens. What they answer is what is measured afterwards."""
    over = time.monotonic() + REACHABLE_S
    while True:
        try:
            async with session.get(f"{url}/models"):
                return
        except aiohttp.ClientConnectionError:
            if time.monotonic() > over:
                raise
        await asyncio.sleep(BEAT_S)


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


async def main(settings: Settings) -> None:
    patience = aiohttp.ClientTimeout(total=UNANSWERED_S)
    connections = aiohttp.TCPConnector(limit=0, keepalive_timeout=UNANSWERED_S)
    async with (
        aiohttp.ClientSession(timeout=patience, connector=connections) as session,
        openai.AsyncOpenAI(base_url=settings.url, api_key="none") as client,
    ):
        await reachable(settings.url, session)
        load = Load(settings, {"sdk": sdk(settings, client), "raw": raw(settings, session)})
        capacity = await load.capacity()
        rate = min(settings.share * capacity, settings.most)
        await asyncio.sleep(SETTLE_S)
        say(capacity=capacity, rate=rate, since=time.time())
        await load.steady(rate)
    say(over=time.time())


if __name__ == "__main__":
    asyncio.run(main(Settings(**json.loads(sys.argv[1]))))

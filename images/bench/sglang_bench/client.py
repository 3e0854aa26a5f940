"""An SGLang server, as the benchmark asks it. Whatever goes wrong is told in one line."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from sglang_bench.errors import BenchError
from sglang_bench.rows import Sample
from sglang_warming.prompts import Prompt

TIMEOUT_S = 600.0
FLUSH_S = 30
"""How long SGLang may wait for its requests to end before it empties its cache."""

NAMESPACE = ("lora_path", "cache_salt")


class Server:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url.rstrip("/")

    async def flush(self) -> None:
        async with self._asked("POST", f"/flush_cache?timeout={FLUSH_S}"):
            pass

    async def body(self, prompt: Prompt) -> dict[str, Any]:
        """What /generate takes for a prompt. Messages are rendered with the engine's own template."""
        fields = prompt.fields()
        if prompt.messages is None:
            return fields
        kept = {name: fields.pop(name) for name in NAMESPACE if name in fields}
        async with self._asked("POST", "/tokenize", fields) as answer:
            return {"input_ids": (await answer.json())["tokens"], **kept}

    async def sample(self, body: dict[str, Any]) -> Sample:
        """One token, and how long it took."""
        sampling = {"temperature": 0, "max_new_tokens": 1, "ignore_eos": True}
        whole = body | {"sampling_params": sampling, "stream": True}
        began_s = time.perf_counter()
        ttft_s, meta = None, None
        async with self._asked("POST", "/generate", whole) as answer:
            async for line in answer.content:
                if not line.startswith(b"data: {"):
                    continue
                ttft_s = ttft_s or time.perf_counter() - began_s
                event = json.loads(line.removeprefix(b"data: "))
                if "error" in event:
                    raise BenchError(f"{self.url}/generate: {str(event['error'])[:300]}")
                meta = event["meta_info"]
        if meta is None:
            raise BenchError(f"{self.url}/generate answers nothing")
        return Sample(meta["prompt_tokens"], meta["cached_tokens"], ttft_s)

    async def answer(self, path: str, headers: dict[str, str]) -> Any:
        async with self._asked("GET", path, headers=headers) as answer:
            return await answer.json()

    @asynccontextmanager
    async def _asked(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self.session.request(
                method,
                self.url + path,
                json=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            ) as answer:
                if answer.status != 200:
                    said = (await answer.text())[:300].strip()
                    raise BenchError(f"{self.url}{path} answers {answer.status}: {said}")
                yield answer
        except aiohttp.ClientError as error:
            raise BenchError(
                f"{self.url}: {error}; is a server there, and does it go on?"
            ) from error
        except (TimeoutError, ValueError, KeyError, TypeError) as error:
            raise BenchError(
                f"{self.url}{path} is not answered as SGLang does: {error!r}"
            ) from error

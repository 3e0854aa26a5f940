"""The engine, as the loop asks it: what it is, how long a prompt is, and to prefill one."""

import json
import re
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

from sglang_warming.prompts import Prompt

LOOK_TIMEOUT_S = 10.0
PREFILL_TIMEOUT_S = 900.0
"""A prompt of a million tokens takes minutes, also on large machines."""

TRY_AGAIN = (408, 425, 429)

TOLD = (
    re.compile(
        r"The input \(\d+ tokens\) is longer than the model's context length \(\d+ tokens\)"
    ),
    re.compile(r"Request prompt exceeds the KV memory budget: input_len=\d+"),
)
"""What SGLang says of a prompt without quoting it."""

OUT_OF_VOCABULARY = re.compile(r"out-of-vocabulary token id (\d+); valid range is (\[0, \d+\))")


class GoneError(Exception):
    """The engine cannot answer now. `sent`: it had been given the request."""

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class RefusedError(Exception):
    """The engine does not take this prompt. The text says why, and holds none of the prompt's."""


@dataclass(frozen=True, slots=True)
class Facts:
    """`ranks`: data-parallel ones, each with a cache of `capacity_tokens` of its own."""

    ranks: int
    capacity_tokens: int


@dataclass(frozen=True, slots=True)
class Prefilled:
    prompt_tokens: int
    cached_tokens: int


class Engine(Protocol):
    """Every method may raise GoneError, those with a prompt RefusedError."""

    async def facts(self) -> Facts: ...

    async def tokens(self, prompt: Prompt) -> int:
        """How many tokens the prompt has."""
        ...

    async def prefill(self, prompt: Prompt, rank: int | None) -> Prefilled:
        """The prompt is in the cache. `rank` None: the engine has only one."""
        ...


class HttpEngine:
    """An SGLang server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def info(self) -> dict[str, Any]:
        """/server_info."""
        try:
            answer = await self._ask("GET", "/server_info", None)
        except RefusedError as error:
            raise GoneError(f"/server_info: {error}") from error
        if not isinstance(answer, dict):
            raise GoneError("/server_info is no object")
        return answer

    async def facts(self) -> Facts:
        info = await self.info()
        try:
            return Facts(max(1, int(info["dp_size"])), int(info["max_total_num_tokens"]))
        except (KeyError, TypeError, ValueError) as error:
            raise GoneError(f"/server_info is not understood: {error!r}") from error

    async def tokens(self, prompt: Prompt) -> int:
        body: dict[str, Any] = {"prompt": prompt.text}
        if prompt.messages is not None:
            body = prompt.fields() | {"lora_path": None, "cache_salt": None}
        return _number(await self._ask("POST", "/tokenize", body, prompt), "count")

    async def prefill(self, prompt: Prompt, rank: int | None) -> Prefilled:
        body = prompt.fields()
        if rank is not None:
            body["routed_dp_rank"] = rank
        if prompt.messages is None:
            # No priority: an unset one is the lowest there is. One token is sampled also for 0.
            body["sampling_params"] = {"temperature": 0, "max_new_tokens": 1}
            if prompt.input_ids is not None:
                # SGLang looks whether these are in its vocabulary, not whether a prompt's are: one
                # that is not ends the engine.
                body["token_ids_logprob"] = [max(prompt.input_ids)]
            answer = await self._ask("POST", "/generate", body, prompt, PREFILL_TIMEOUT_S)
        else:
            body |= {"temperature": 0, "max_tokens": 1, "return_meta_info": True}
            answer = await self._ask(
                "POST", "/v1/chat/completions", body, prompt, PREFILL_TIMEOUT_S
            )
            choices = answer.get("choices") if isinstance(answer, dict) else None
            answer = choices[0] if isinstance(choices, list) and choices else None
        meta = answer.get("meta_info") if isinstance(answer, dict) else None
        return Prefilled(_number(meta, "prompt_tokens"), _number(meta, "cached_tokens"))

    async def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        prompt: Prompt | None = None,
        timeout_s: float = LOOK_TIMEOUT_S,
    ) -> Any:
        timeout = aiohttp.ClientTimeout(total=timeout_s, connect=LOOK_TIMEOUT_S)
        try:
            async with self._session.request(
                method, self._url + path, json=body, timeout=timeout, allow_redirects=False
            ) as answer:
                data = await answer.read()
        except aiohttp.ClientConnectorError as error:
            raise GoneError(f"{self._url} cannot be reached: {error.os_error}") from error
        except aiohttp.ConnectionTimeoutError as error:
            raise GoneError(f"{self._url} cannot be reached in time") from error
        except TimeoutError as error:
            raise GoneError(f"{path} did not answer in time", sent=True) from error
        except aiohttp.ClientError as error:
            raise GoneError(f"{path}: the connection broke: {error!r}", sent=True) from error
        if answer.status >= 500 or answer.status in TRY_AGAIN:
            raise GoneError(f"{path} answers {answer.status}", sent=answer.status >= 500)
        if answer.status != 200:
            raise RefusedError(refusal(answer.status, data.decode(errors="replace"), prompt))
        try:
            return json.loads(data)
        except ValueError as error:
            raise GoneError(f"{path} answers no JSON") from error


def refusal(status: int, said: str, prompt: Prompt | None) -> str:
    """Why SGLang refused a prompt. Only sentences that are known to hold no text of it."""
    if found := OUT_OF_VOCABULARY.search(said):
        return f"input_ids: got {found[1]}; the model's ids are {found[2]}; correct it"
    for sentence in TOLD:
        if found := sentence.search(said):
            return f"{found[0]}; shorten it"
    if prompt and prompt.lora_path and "lora" in said.lower():
        return f'lora_path: got "{prompt.lora_path}"; the engine has no such adapter; load it'
    return f"SGLang answers {status}; send it to the engine by hand to see why"


def _number(answer: Any, name: str) -> int:
    value = answer.get(name) if isinstance(answer, dict) else None
    if type(value) is not int:
        raise GoneError(f"the engine does not tell {name}", sent=True)
    return value

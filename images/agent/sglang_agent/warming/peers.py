"""What other engines of the cluster find hot. Their agents are asked once; none is waited for."""

import asyncio
import json
import math
import random
import socket
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

import aiohttp

from sglang_agent.warming.prefixes import LISTED_PER_TOKEN, MAX_LISTED
from sglang_agent.warming.settings import Peers
from sglang_warming.prompts import Prompt, identity, prompt_of

ANSWER_S = 1.5
"""For all of it: finding the peer, its answer, and reading that. Understanding comes on top."""

MAX_PEERS = 4
"""That are asked, by chance where there are more. Each has seen a share of the same requests."""

MAX_ANSWER_BYTES = 4 * 2**20

PATH = "/v1/prefix/hottest"
REASONS = ("down", "slow", "refused", "too_large", "malformed", "other_revision")


@dataclass(frozen=True, slots=True)
class Hot:
    prompt: Prompt
    hits: float


class SkippedError(Exception):
    """A peer's answer is not used. `reason` is one of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class Found:
    prompts: list[Prompt] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


async def asked(session: aiohttp.ClientSession, peers: Peers, port: int, token: bytes) -> Found:
    """What the peers find hottest, the hottest first."""
    found = Found()
    round_ = _Round(session, peers, port, token, asyncio.get_running_loop().time() + ANSWER_S)
    try:
        async with asyncio.timeout_at(round_.deadline_s):
            addresses = await _addresses(peers, port)
    except TimeoutError:
        addresses = []
        found.skipped["slow"] += 1
    answers: list[list[Hot]] = []
    for answer in await asyncio.gather(*(round_.answer(address) for address in addresses)):
        if isinstance(answer, SkippedError):
            found.skipped[answer.reason] += 1
        else:
            answers.append(answer)
    found.prompts = _best(answers)
    return found


async def _addresses(peers: Peers, port: int) -> list[str]:
    """None where the name says nothing: the first pod of a cluster has no peers."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(peers.service, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    addresses = sorted({str(address[0]) for *_, address in found} - {peers.own_ip})
    return random.sample(addresses, min(MAX_PEERS, len(addresses)))


@dataclass(frozen=True, slots=True)
class _Round:
    session: aiohttp.ClientSession
    peers: Peers
    port: int
    token: bytes
    deadline_s: float

    async def answer(self, address: str) -> list[Hot] | SkippedError:
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{self.port}{PATH}?max_tokens={self.peers.max_tokens}"
        headers = {"Authorization": f"Bearer {self.token.decode(errors='replace')}"}
        try:
            async with (
                asyncio.timeout_at(self.deadline_s),
                self.session.get(url, headers=headers, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    return SkippedError("refused")
                return understood(await _read(answer.content), self.peers)
        except TimeoutError:
            return SkippedError("slow")
        except (aiohttp.ClientError, ValueError):  # the latter for a token that is no header
            return SkippedError("down")
        except SkippedError as skipped:
            return skipped


async def _read(content: aiohttp.StreamReader) -> bytes:
    data = b""
    async for piece in content.iter_any():
        data += piece
        if len(data) > MAX_ANSWER_BYTES:
            raise SkippedError("too_large")
    return data


def understood(data: bytes, peers: Peers) -> list[Hot]:
    """A peer's answer, checked. SkippedError where it cannot be used."""
    try:
        answer = json.loads(data)
        revision = answer["revision"]
        hot = [_hot(prefix) for prefix in answer["prefixes"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise SkippedError("malformed") from None
    if revision != peers.revision:
        raise SkippedError("other_revision")
    listed = sum(len(each.prompt.input_ids or ()) for each in hot)
    if listed > LISTED_PER_TOKEN * peers.max_tokens:
        raise SkippedError("too_large")
    return hot


def _hot(prefix: dict[str, Any]) -> Hot:
    fields = {"lora_path": prefix["lora_name"], "cache_salt": prefix["cache_salt"]}
    hits = prefix["hits"]
    if type(hits) not in (int, float) or not math.isfinite(hits):
        raise ValueError("hits")
    return Hot(prompt_of({"input_ids": prefix["input_ids"], **fields}), hits)


def _best(answers: Iterable[list[Hot]]) -> list[Prompt]:
    """From each in turn its hottest: one that lies about its hits gets no more than its share."""
    ranked = [sorted(answer, key=lambda hot: -hot.hits) for answer in answers if answer]
    ranked.sort(key=lambda answer: -answer[0].hits)
    prompts: dict[str, Prompt] = {}
    listed = 0
    for each in chain.from_iterable(zip_longest(*ranked)):
        if each is None:
            continue
        listed += len(each.prompt.input_ids or ())
        if listed > MAX_LISTED:
            break
        prompts.setdefault(identity(each.prompt), each.prompt)
    return list(prompts.values())

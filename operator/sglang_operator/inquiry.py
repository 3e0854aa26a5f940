"""One request to one pod. Whatever is there may answer anything, or nothing."""

import aiohttp

from sglang_operator.answers import MAX_AGENT_BYTES, MAX_ROUTER_BYTES, MalformedError
from sglang_operator.targets import Target

TIMEOUT_S = 1.0
"""For all of it. Nobody waits for one pod longer."""

UNAVAILABLE = 503
"""A router's answer while it cannot tell, which is nothing to complain of."""


class UnansweredError(Exception):
    """Nothing can be learned now."""


def new_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        # A pod is asked so rarely that a connection is not worth keeping.
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity", "User-Agent": "sglang-operator"},
        auto_decompress=False,  # a small answer could become a huge one
        trust_env=False,  # no proxy knows the way to pods
    )


async def answer_of(session: aiohttp.ClientSession, target: Target) -> bytes:
    """The body that a pod answers with. MalformedError: what no agent and no router says."""
    limit = MAX_ROUTER_BYTES if target.router else MAX_AGENT_BYTES
    try:
        async with session.get(target.url, allow_redirects=False) as answer:
            if answer.status == UNAVAILABLE:
                raise UnansweredError(f"it answers {UNAVAILABLE}")
            if answer.status != 200:
                raise MalformedError(f"it answers {answer.status}")
            return await _at_most(answer.content, limit)
    except aiohttp.ClientResponseError as error:
        raise MalformedError(f"it is not HTTP: {error.message[:200]}") from error
    except (aiohttp.ClientError, OSError) as error:  # a time-out is an OSError
        raise UnansweredError(str(error) or type(error).__name__) from error


async def _at_most(content: aiohttp.StreamReader, limit: int) -> bytes:
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > limit:
            raise MalformedError(f"it has more than {limit} bytes")
    return bytes(body)

"""The command `sglang-bench`."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sglang_bench import replay, report, servers
from sglang_bench.errors import BenchError
from sglang_bench.plot import svg
from sglang_bench.progress import Progress
from sglang_bench.rows import Row

API_KEY = "SGLANG_BENCH_API_KEY"
OF_SERVERS = ("url", "prompts", "requests", "seed", "peer_url", "peer_max_tokens")
OF_A_TRACE = ("trace", "requests", "blocks", "at", "warm_blocks")
WARMING = """
What warming a cache is worth: hit ratio and time to first token of the first requests, with a cold
cache, one that was warmed, and one that was warmed with what is hot in a peer's cache.

With --url it asks running servers, whose caches it empties: take servers that nobody else uses.
With --trace it replays requests on SGLang's own tree, without a server and so without times.
"""


def parser() -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser(prog="sglang-bench", description=__doc__)
    command = commands.add_subparsers(dest="command", required=True).add_parser(
        "warming", description=WARMING, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--url", type=_url, help="the server, as http://HOST:PORT; its API key in " + API_KEY
    )
    where.add_argument("--trace", type=Path, metavar="FILE", help="requests in Mooncake's format")
    command.add_argument("--requests", type=_count, default=100, help="to measure (default: 100)")
    command.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    command.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it")
    asked = command.add_argument_group("with --url")
    asked.add_argument("--prompts", type=Path, metavar="FILE", help="what is warmed and asked for")
    asked.add_argument("--seed", type=int, default=1, help="of the requests (default: 1)")
    asked.add_argument(
        "--peer-url", type=_url, help="a second server, which has served such requests"
    )
    asked.add_argument(
        "--peer-agent-url", type=_url, help="the agent beside it, as http://HOST:30001"
    )
    asked.add_argument("--token-file", type=Path, help="what that agent wants to be shown")
    asked.add_argument("--peer-max-tokens", type=_count, default=100_000, help="(default: 100000)")
    replayed = command.add_argument_group("with --trace")
    replayed.add_argument("--blocks", type=_count, default=5000, help="of a cache (default: 5000)")
    replayed.add_argument(
        "--at", type=_part, default=0.5, help="part of the trace that was served before (0.5)"
    )
    replayed.add_argument(
        "--warm-blocks", type=_count, help="that may be warmed (default: 0.8 of a cache)"
    )
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        for path in (options.json, options.plot):
            _has_a_folder(path)
        rows, notes = _measured(options)
        print(report.table(rows))  # noqa: T201
        for note in notes:
            print(f"note: {note}", file=sys.stderr)  # noqa: T201
        unit = "blocks" if options.trace else "tokens"
        if options.json:
            written(options.json, report.as_json(rows, _settings(options) | {"unit": unit}, notes))
        if options.plot:
            written(options.plot, svg(rows, unit))
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print("interrupted; nothing is written", file=sys.stderr)  # noqa: T201
        return 130
    return 0


def written(path: Path, text: str) -> None:
    """The whole file, or none."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(text)
        new.replace(path)
    except OSError as error:
        raise BenchError(f'got "{path}"; it cannot be written ({error.strerror})') from error
    finally:
        new.unlink(missing_ok=True)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """What it takes to measure the same again."""
    names = OF_A_TRACE if options.trace else OF_SERVERS
    return {name: getattr(options, name) for name in names}


def _measured(options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    if options.trace:
        trace = replay.Options(
            options.trace, options.blocks, options.requests, options.at, options.warm_blocks
        )
        return replay.measured(trace, Progress()), []
    if options.prompts is None:
        raise BenchError("--prompts: is missing; with --url, name a file of prompts")
    asked = servers.Options(
        options.url,
        options.prompts,
        options.requests,
        options.seed,
        os.environ.get(API_KEY, ""),
        _peer(options),
    )
    return asyncio.run(servers.measured(asked, Progress()))


def _peer(options: argparse.Namespace) -> servers.Peer | None:
    needed = {
        "--peer-url": options.peer_url,
        "--peer-agent-url": options.peer_agent_url,
        "--token-file": options.token_file,
    }
    missing = [flag for flag, value in needed.items() if value is None]
    if len(missing) == len(needed):
        return None
    if missing:
        raise BenchError(f"{missing[0]}: is missing; a peer takes {', '.join(needed)}")
    try:
        token = options.token_file.read_text().strip()
    except OSError as error:
        raise BenchError(
            f'--token-file: got "{options.token_file}"; it cannot be read ({error.strerror})'
        ) from error
    return servers.Peer(options.peer_url, options.peer_agent_url, token, options.peer_max_tokens)


def _has_a_folder(path: Path | None) -> None:
    """Told before the measuring, not after it."""
    if path and not path.parent.is_dir():
        raise BenchError(f'got "{path}"; there is no folder {path.parent}; make it')


def _count(value: str) -> int:
    if not (value.isascii() and value.isdigit() and int(value)):
        raise argparse.ArgumentTypeError(f'got "{value}"; it is a whole number above 0')
    return int(value)


def _url(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f'got "{value}"; write it like http://127.0.0.1:30000')
    return value


def _part(value: str) -> float:
    try:
        part = float(value)
    except ValueError:
        part = 0.0
    if not 0 < part < 1:
        raise argparse.ArgumentTypeError(f'got "{value}"; it is a number between 0 and 1')
    return part

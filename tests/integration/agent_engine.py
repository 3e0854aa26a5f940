"""A real SGLang engine on CPU with a model of random weights, agents beside it, and the preStop."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aiohttp

from tests.integration.control_plane import free_port

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("SGLANG_OPERATOR_CACHE") or Path.home() / ".cache" / "sglang-operator")
PYTHON = CACHE / "engine-env" / "bin" / "python"
SCRIPT = (ROOT / "controllers/sglang_controllers/scripts/drain.py").read_text()
TOKEN = "sesame"

SETTINGS = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}
"""What Python needs to be a CPU engine."""

START_S = 180
"""The engine's, on a busy machine. It takes 20 s on a quiet one."""

MODEL = """
import json, sys
from pathlib import Path
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
sys.path.insert(0, sys.argv[1])
import tiny
out = Path(sys.argv[2])
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens(["<end>"])
tokenizer.save(str(out / "tokenizer.json"))
chat = "{% for message in messages %}{{ message.role }}: {{ message.content }}\\n{% endfor %}"
names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "chat_template": chat}
(out / "tokenizer_config.json").write_text(json.dumps(names))
config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 257,
    "max_position_embeddings": 4096, "eos_token_id": 256, "bos_token_id": 256, **tiny.SHAPE}
(out / "config.json").write_text(json.dumps(config))
save_file(tiny.tensors(257), out / "model.safetensors", metadata={"format": "pt"})
"""
"""The shape of images/model/tiny.py with a token for each byte: nothing has to be downloaded."""


async def until_true(check: Any, what: str, timeout_s: float = 30) -> None:
    """Wait until `await check()` holds."""
    end_s = time.monotonic() + timeout_s
    while not await check():
        assert time.monotonic() < end_s, f"{what}: not within {timeout_s:g} s"
        await asyncio.sleep(0.05)


class Engine:
    """One that can be killed and started again at its port."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "engine.log"
        self._model = folder / "model"
        self._model.mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_with: tuple[tuple[str, ...], dict[str, str]] = (), {}
        make = ["-c", MODEL, str(ROOT / "images/model"), str(self._model)]
        subprocess.run([str(PYTHON), *make], check=True, capture_output=True)

    def start(self, *more: str, **environment: str) -> None:
        self._started_with = more, environment
        arguments = {
            "model-path": self._model,
            "port": self.port,
            "host": "127.0.0.1",
            "device": "cpu",
            "attention-backend": "intel_amx",
            "dtype": "float32",
            "max-total-tokens": 8192,
            "max-running-requests": 16,
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(str(PYTHON), "-m", "sglang.launch_server"),
                    *("--enable-metrics", "--sleep-on-idle"),
                    *(f"--{name}={value}" for name, value in arguments.items()),
                    *more,
                ],
                env={**os.environ, **SETTINGS, **environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_again(self) -> None:
        """As the last time."""
        more, environment = self._started_with
        self.start(*more, **environment)

    async def until_ready(self) -> None:
        async def ready() -> bool:
            running = self._process and self._process.poll() is None
            assert running, f"the engine has ended:\n{self._log.read_text()[-3000:]}"
            try:
                async with aiohttp.ClientSession() as client, client.get(f"{self.url}/ready") as a:
                    return a.status == 200
            except aiohttp.ClientError:
                return False

        await until_true(ready, "the engine is ready", START_S)

    def kill(self) -> None:
        """All of its processes, as when the kernel is out of memory."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @contextmanager
    def hung(self) -> Iterator[None]:
        """It accepts connections, as the kernel does that, and says nothing."""
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    async def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Its answer's JSON, or text where it is none."""
        unlimited = aiohttp.ClientTimeout(total=300)
        async with (
            aiohttp.ClientSession(timeout=unlimited) as client,
            client.request("POST" if body else "GET", self.url + path, json=body) as answer,
        ):
            assert answer.status == 200, await answer.text()
            is_json = answer.content_type == "application/json"
            return await (answer.json() if is_json else answer.text())

    async def held(self) -> int:
        """Requests that its scheduler holds."""
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{self.url}/v1/loads?include=core") as answer,
        ):
            loads = (await answer.json())["loads"]
        return sum(load["num_running_reqs"] + load["num_waiting_reqs"] for load in loads)


@dataclass
class Stream:
    """A request for so many tokens that is read, once it is, as they come."""

    answer: aiohttp.ClientResponse
    tokens: int
    ended_s: float = 0.0

    async def read(self) -> None:
        """To its end, which has to be whole."""
        rest = await self.answer.content.read()
        self.ended_s = time.monotonic()
        *_, last, done = rest.strip().split(b"\n\n")
        assert done == b"data: [DONE]"
        meta = json.loads(last.removeprefix(b"data: "))["meta_info"]
        assert meta["finish_reason"] == {"type": "length", "length": self.tokens}
        assert meta["completion_tokens"] == self.tokens


@asynccontextmanager
async def stream(engine: Engine, tokens: int, *, top_logprobs: int = 0) -> AsyncIterator[Stream]:
    """A stream that has begun. Each line repeats all before it, so logprobs make it many MB."""
    sampling = {"max_new_tokens": tokens, "ignore_eos": True}
    body: dict[str, Any] = {"text": "hello", "sampling_params": sampling, "stream": True}
    if top_logprobs:
        body |= {"return_logprob": True, "top_logprobs_num": top_logprobs}
    unlimited = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=unlimited) as client,
        client.post(f"{engine.url}/generate", json=body) as answer,
    ):
        assert answer.status == 200
        await answer.content.readany()
        yield Stream(answer, tokens)


@dataclass
class Drain:
    """A run of the preStop script."""

    process: asyncio.subprocess.Process
    began_s: float = field(default_factory=time.monotonic)

    async def ended(self) -> tuple[str, float]:
        """The last line that it has printed, and how long it took. It exits with 0 always."""
        _, said = await asyncio.wait_for(self.process.communicate(), 60)
        took_s = time.monotonic() - self.began_s
        assert self.process.returncode == 0
        return said.decode().splitlines()[-1], took_s


class Agent:
    """`python -m sglang_agent` beside the engine."""

    def __init__(
        self,
        folder: Path,
        engine_url: str,
        reaction_s: float,
        timeout_s: float,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.port = free_port()
        self._more = more
        self.socket = folder / "agent.sock"
        self.token_file = folder / "token"
        self.token_file.write_text(TOKEN)
        self.termination_log = folder / "termination-log"
        self.termination_log.touch()
        self._engine_url = engine_url
        self._reaction_s, self._timeout_s = reaction_s, timeout_s
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        settings = {
            "SGLANG_AGENT_ENGINE_URL": self._engine_url,
            "SGLANG_AGENT_PORT": str(self.port),
            "SGLANG_AGENT_SOCKET": str(self.socket),
            "SGLANG_AGENT_TOKEN_FILE": str(self.token_file),
            "SGLANG_AGENT_DRAIN_TIMEOUT_S": str(self._timeout_s),
            "SGLANG_AGENT_REACTION_S": str(self._reaction_s),
            "SGLANG_AGENT_TERMINATION_LOG": str(self.termination_log),
        }
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sglang_agent",
            env={**os.environ, **settings, **self._more},
            stderr=asyncio.subprocess.PIPE,
        )

    def forget_engine(self) -> None:
        """The next agent at this place does not know that the engine has served."""
        self.socket.with_name("gate-opened-for").unlink()

    async def end(self, number: int = signal.SIGKILL) -> str:
        """What it has logged."""
        assert self.process
        if self.process.returncode is None:
            self.process.send_signal(number)
        _, said = await asyncio.wait_for(self.process.communicate(), 30)
        return said.decode()

    async def get(self, path: str, token: str = "") -> tuple[int, str]:
        """Status and body; status 0 where nothing listens."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with (
                aiohttp.ClientSession(headers=headers) as client,
                client.get(f"http://127.0.0.1:{self.port}{path}") as answer,
            ):
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""

    async def status(self) -> dict[str, Any]:
        code, text = await self.get("/v1/status", TOKEN)
        assert code == 200, text
        answer: dict[str, Any] = json.loads(text)
        return answer

    async def metric(self, name: str) -> float:
        _, text = await self.get("/metrics")
        return next(float(row.split()[-1]) for row in text.splitlines() if row.startswith(name))

    async def until_ready(self, wanted: int = 200, timeout_s: float = 30) -> None:
        async def ready() -> bool:
            return (await self.get("/readyz"))[0] == wanted

        await until_true(ready, f"/readyz answers {wanted}", timeout_s)

    async def drain(self) -> Drain:
        """preStop, with this agent or without."""
        return await run_script(self.socket, self._engine_url, self._reaction_s, self._timeout_s)

    async def ask_to_drain(self) -> dict[str, Any]:
        """What preStop asks, without the script."""
        unix = aiohttp.UnixConnector(str(self.socket))
        async with (
            aiohttp.ClientSession(connector=unix) as client,
            client.post("http://localhost/v1/drain") as answer,
        ):
            ended: dict[str, Any] = await answer.json()
            return ended

    def memory_mib(self) -> float:
        """Resident memory."""
        assert self.process
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def run_script(socket: Path, url: str, reaction_s: float, timeout_s: float) -> Drain:
    arguments = [str(socket), url, str(reaction_s), str(timeout_s)]
    return Drain(
        await asyncio.create_subprocess_exec(
            "python3", "-c", SCRIPT, *arguments, stderr=asyncio.subprocess.PIPE
        )
    )

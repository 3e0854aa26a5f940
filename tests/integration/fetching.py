"""What the tests of the download run it with: a hub, a cache, and pods of their own."""

import os
import re
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from e2e.hub import Fault, Hub, commit
from sglang_controllers.resources.download import SCRIPT

CACHE = Path(os.environ.get("SGLANG_OPERATOR_CACHE") or Path.home() / ".cache" / "sglang-operator")
PYTHON = CACHE / "engine-env" / "bin" / "python3"

TOKEN = "hf_letmein"
STRANGER = "hf_somebodyelse"
MODEL = "org/tiny"
WEIGHTS = "model-00001-of-00002.safetensors"
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer/vocab.json": b'{"a": 0}',
    WEIGHTS: bytes(300_000),
    "model-00002-of-00002.safetensors": bytes(200_000),
}


@dataclass
class Site:
    """A hub, and a cache that pods share."""

    hub: Hub
    cache: Path
    home: Path
    links: Path
    before: list[str] = field(default_factory=list)
    """A command that the script is run by."""
    script: str = SCRIPT
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def model(self) -> Path:
        return self.cache / "hf" / "org--tiny"

    @property
    def commit(self) -> str:
        return commit(self.hub.root / MODEL)

    def command(self, *pairs: str) -> list[str]:
        return [*self.before, str(PYTHON), "-c", self.script, str(self.cache), *pairs]

    def env(self, token: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HF_HOME": str(self.home / "hf"),
            "HF_ENDPOINT": self.hub.url,
            "HF_HUB_OFFLINE": "1",  # as engines have it, which the script must not mind
            **({"HF_TOKEN": token} if token else {}),
        }

    def start(self, *pairs: str, token: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.command(*pairs),
            env=self.env(token),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def fetch(self, source: str = MODEL, token: str = "") -> "Ended":
        """Run to the end, with the link `model`."""
        return ended(self.start(source, str(self.links / "model"), token=token))

    def linked(self, name: str = "model") -> dict[str, bytes]:
        """The files that the engine finds behind the link."""
        folder = self.links / name
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """What the status of the cluster will say."""
        assert self.code == 1, self
        return self.err.splitlines()[-1]


def ended(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=60)
    return Ended(process.returncode, out, err)


def with_constant(name: str, value: str) -> str:
    """The script with shorter times than people need."""
    script, found = re.subn(rf"^{name} = .*$", f"{name} = {value}", SCRIPT, flags=re.MULTILINE)
    assert found == 1
    return script


def put(root: Path, model: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / model / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def wait_for_files(folder: Path, names: list[str]) -> None:
    """Until huggingface_hub has noted each of them as fetched."""
    notes = [folder / ".cache/huggingface/download" / f"{name}.metadata" for name in names]
    for _ in range(600):
        if all(note.exists() and note.read_text().count("\n") == 3 for note in notes):
            return
        pause()
    raise AssertionError(f"{folder} lacks some of {names}")


def wait_for_answers(port: int) -> None:
    for _ in range(600):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        pause()
    raise AssertionError(f"nothing listens on port {port}")


def pause() -> None:
    time.sleep(0.05)


def killed_while_it_fetches(site: Site) -> Path:
    """The folder of a download that had all files but one."""
    site.hub.stalled.clear()
    site.hub.faults.append(Fault(WEIGHTS, stall_after=100_000))
    process = site.start(MODEL, str(site.links / "model"))
    assert site.hub.stalled.wait(30)
    partial = site.model / f"{site.commit}.partial"
    wait_for_files(partial, [name for name in FILES if name != WEIGHTS])
    process.kill()
    ended(process)
    return partial


def apart(namespace: str, script: str, *arguments: str) -> list[str]:
    """Run what follows after a script, in a namespace that is changed for it alone. Root or not."""
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", namespace, *user, "sh", "-euc", script, "sh", *arguments]


def in_a_mount(cache: Path, options: str) -> list[str]:
    """With a file system of its own at the cache."""
    script = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'
    return apart("--mount", script, options, str(cache))


def in_a_pod(name: str) -> list[str]:
    """With a host name of its own."""
    return apart("--uts", 'hostname "$1" && shift && exec "$@"', name)

# ruff: noqa: INP001, T201  a script, not a module: an init container runs its text with `python3 -c`
"""Fetch models from a hub into a folder that many pods may share, and link to them.

Arguments: CACHE SOURCE LINK [SOURCE LINK ...]. A SOURCE is `name@revision`, without one `main`.
Needs Python 3.10 and huggingface_hub 0.30, which every SGLang image brings, or newer ones.

CACHE/hf/<org>--<name>/<commit>/           the files of a commit; never changed under this name
CACHE/hf/<org>--<name>/<commit>.complete   written last; without it the folder is not used
CACHE/hf/<org>--<name>/<commit>.partial/   an unfinished download, which the next one goes on with
CACHE/hf/<org>--<name>/<commit>.lock       held by the pod that fetches it
CACHE/hf/<org>--<name>/refs/<revision>     the commit that a branch or tag last was

A failure ends stderr with `error: <kind>: <sentence>`. `explained` has the kinds.
"""

import errno
import fcntl
import fnmatch
import os
import re
import shutil
import signal
import socket
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, Any

PROGRESS_S = 10
PAUSES_S = (1, 3)
"""Between tries. The kubelet tries again as well, so these only bridge what passes soon."""
ANSWER_TIMEOUT_S = 30
FILES_AT_ONCE = 8

COMMIT = re.compile("[0-9a-f]{40}")
NEVER_READ = (
    *("original/*", ".gitattributes", "*.h5", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot"),
    *("*.tflite", "*.png", "*.jpg", "*.jpeg", "*.gif", "*.webp", "*.svg"),
    *("*optimizer.pt", "*scheduler.pt", "*scaler.pt"),
)
SECOND_COPIES = (".bin", ".pth", ".gguf")
"""SGLang reads none of these in a folder that has *.safetensors. It does read some *.pt there:
DFlash's mask_embedding.pt, BGE-M3's sparse_linear.pt."""
KILLED = re.compile(r"\.lock$|\.[0-9a-f]{8}\.incomplete$")
"""What a killed download leaves behind and no other goes on with. Some file systems have locks
that are files."""

Sizes = dict[str, int | None]
"""Of files, in bytes. Some mirrors do not tell."""


def wanted(names: list[str]) -> list[str]:
    """The files of a model that SGLang can read."""
    folders = {name.rpartition("/")[0] for name in names if name.endswith(".safetensors")}
    return [
        name
        for name in names
        if not any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in NEVER_READ)
        and not (name.endswith(SECOND_COPIES) and name.rpartition("/")[0] in folders)
    ]


def token() -> str:
    return os.environ.get("HF_TOKEN", "").strip()


def shown(text: str) -> str:
    """The text without the token, and without the password of a mirror."""
    text = re.sub(r"//[^/@\s]*@", "//", text)
    return text.replace(token(), "***") if token() else text


def say(text: str) -> None:
    print(shown(text), flush=True)


def brief(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def root(error: BaseException) -> BaseException:
    """The system's own word, below what libraries made of it."""
    while below := error.__cause__ or error.__context__:
        error = below
    return error


def kind_of(error: BaseException | None) -> str:
    """What went wrong. Classes are told by name: their homes and parents differ by version."""
    while error:
        classes = {each.__name__ for each in type(error).__mro__}
        status = getattr(getattr(error, "response", None), "status_code", None)
        number = getattr(error, "errno", None)
        if isinstance(error, ImportError):
            return "no-client"
        if "RevisionNotFoundError" in classes:
            return "no-revision"
        if "GatedRepoError" in classes or status == 403:
            return "gated"
        if "RepositoryNotFoundError" in classes:
            return "no-model"
        if status == 401:
            return "gated"
        if status:
            passes = status >= 500 or status in (408, 429)
            missing = status == 404 and "EntryNotFoundError" not in classes
            return "unreachable" if passes else "no-model" if missing else "failed"
        # hf_xet has no error numbers.
        if number in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in str(error):
            return "no-space"
        if number in (errno.EACCES, errno.EROFS, errno.EPERM):
            return "not-writable"
        network = type(error).__module__.partition(".")[0] in ("httpx", "requests", "urllib3")
        if network or isinstance(error, (ConnectionError, TimeoutError, socket.gaierror)):
            return "unreachable"
        error = error.__cause__ or error.__context__
    return "failed"


def explained(kind: str, error: BaseException, cache: Path, source: str) -> str:
    """One sentence for people, at most 300 characters."""
    hub = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    name, revision = split(source)
    free = shutil.disk_usage(cache).free / 2**30 if kind == "no-space" else 0
    sentence = {
        "gated": f"{hub} does not give {source} to the token that is set: it is wrong, or its "
        "account has no access to the model"
        if token()
        else f"{hub} does not give {source} without a token, and none is set",
        "no-model": f"{hub} has no model {name} (of {source}), or "
        + ("the token that is set may not see it" if token() else "it is private: no token is set"),
        "no-revision": f"{hub} has the model {name}, but no revision {revision} of it ({source})",
        "unreachable": f"{hub} cannot be reached for {source}, and the cache has no complete copy "
        f"that would do: {brief(root(error))}",
        "no-space": f"{source} of {hub} does not fit into {cache}, where {free:.1f} GiB are free: "
        f"{root(error)}",
        "not-writable": f"{source} of {hub} cannot be stored in {cache}: user {os.getuid()} may "
        f"not write there ({error})",
        "no-client": f"{source} cannot be fetched from {hub}: huggingface_hub is missing or too "
        f"old in this image ({error})",
    }.get(kind, f"{source} cannot be fetched from {hub}: {brief(error)}")
    return " ".join(shown(sentence).split())[:300]


def split(source: str) -> tuple[str, str]:
    name, _, revision = source.partition("@")
    return name, revision or "main"


def retried(what: str, action: Callable[[], Any]) -> Any:
    """What the action returns, once it does. Errors that no time heals are not tried again."""
    for pause_s in PAUSES_S:
        try:
            return action()
        except Exception as error:
            if kind_of(error) not in ("unreachable", "failed"):
                raise
            say(f"{what}: trying again in {pause_s} s: {brief(error)}")
            time.sleep(pause_s)
    return action()


def write(path: Path, text: str) -> None:
    """Readers see all of the text or none, also after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def is_complete(model: Path, commit: str) -> bool:
    # Listing the folder makes NFS ask its server. Asking for one name may get an old "no".
    return model.is_dir() and model / f"{commit}.complete" in model.iterdir()


def take_turn(lock: IO[str], source: str) -> bool:
    """Wait until no other pod fetches this commit. False where the file system has no locks."""
    next_word = time.monotonic()
    while True:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                return False
            if time.monotonic() >= next_word:
                say(f"{source}: waiting for another pod that is fetching it")
                next_word = time.monotonic() + PROGRESS_S
            time.sleep(0.5)
        else:
            return True


def bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # it has got its final name since
            continue
    return total


def fetch_files(api: Any, source: str, commit: str, sizes: Sizes, folder: Path) -> None:
    """Several files at a time into the folder. What is there from an earlier try is kept."""

    def fetch(name: str) -> None:
        path = api.hf_hub_download(split(source)[0], name, revision=commit, local_dir=folder)
        with open(path, "rb") as file:  # noqa: PTH123  a string
            os.fsync(file.fileno())

    total = sum(size or 0 for size in sizes.values()) / 2**20
    errors: list[BaseException] = []
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        jobs = [pool.submit(fetch, name) for name in sizes]
        while going := [job for job in jobs if not job.done()]:
            wait(going, PROGRESS_S, FIRST_EXCEPTION)
            ended = [job.exception() for job in jobs if job.done() and not job.cancelled()]
            errors = [error for error in ended if error]
            files, mib = len(ended) - len(errors), bytes_in(folder) / 2**20
            say(f"{source}: {files} of {len(jobs)} files, {mib:.1f} of {total:.1f} MiB")
            for job in going if errors else ():
                job.cancel()
    if errors:
        raise errors[0]


def publish(model: Path, commit: str, sizes: Sizes, partial: Path) -> None:
    """Give the files their final name and say that they are complete."""
    final = model / commit
    if partial.is_dir():
        shutil.rmtree(partial / ".cache", ignore_errors=True)  # huggingface_hub's own notes
        try:
            partial.rename(final)
        except OSError:
            if not final.is_dir():
                raise
            shutil.rmtree(partial)  # without locks, another pod was faster
    files = [(final / name, size) for name, size in sizes.items()]
    if not all(f.is_file() and size in (None, f.stat().st_size) for f, size in files):
        shutil.rmtree(final)
        raise RuntimeError(f"files of commit {commit} are missing or have another size")
    write(model / f"{commit}.complete", f"{len(files)} files, {bytes_in(final)} bytes\n")


def download(api: Any, source: str, model: Path, commit: str, sizes: Sizes) -> None:
    model.mkdir(parents=True, exist_ok=True)
    with (model / f"{commit}.lock").open("w") as lock:
        locked = take_turn(lock, source)
        if is_complete(model, commit):
            return
        # Without locks every pod works in a folder of its own. A host's name is the pod's.
        partial = model / f"{commit}.{'' if locked else socket.gethostname() + '.'}partial"
        for left in (partial / ".cache").rglob("*"):
            if KILLED.search(left.name):
                left.unlink(missing_ok=True)

        def fetch() -> None:
            if not (model / commit).is_dir():
                partial.mkdir(exist_ok=True)
                fetch_files(api, source, commit, sizes, partial)
            publish(model, commit, sizes, partial)

        retried(source, fetch)


def fetched(cache: Path, source: str) -> Path:
    """The folder of the commit that the source is, with all files in it."""
    name, revision = split(source)
    model = cache / "hf" / name.replace("/", "--")
    if COMMIT.fullmatch(revision) and is_complete(model, revision):
        say(f"{source}: complete in the cache")
        return model / revision
    # Here, for what is complete needs no hub. The library is the engine image's, not ours.
    from huggingface_hub import HfApi  # noqa: PLC0415

    api = HfApi()
    known = model / "refs" / revision.replace("/", "--")
    last = known.read_text() if known.is_file() else ""
    ask = {"revision": revision, "files_metadata": True, "timeout": ANSWER_TIMEOUT_S}
    try:
        info = retried(source, lambda: api.model_info(name, **ask))
    except Exception as error:
        if kind_of(error) != "unreachable" or not (last and is_complete(model, last)):
            raise
        say(f"{source}: the hub cannot be reached: using {last}, the last commit known")
        return model / last
    commit = str(info.sha)
    if is_complete(model, commit):
        say(f"{source}: commit {commit} is complete in the cache")
    else:
        sizes = {file.rfilename: file.size for file in info.siblings or ()}
        say(f"{source}: fetching commit {commit}")
        sizes = {name: sizes[name] for name in wanted(list(sizes))}
        download(api, source, model, commit, sizes)
        say(f"{source}: complete")
    if commit != last:
        write(known, commit)
    return model / commit


def link(path: Path, folder: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    fresh.symlink_to(folder)
    fresh.replace(path)


def main(cache: Path, pairs: list[str]) -> int:
    # This process has number 1 in its container, for which the kernel ignores SIGTERM otherwise.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    os.umask(0o002)  # pods of other users share the folder by its group
    os.environ |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    # Older versions keep 10 GiB of what they fetch in HF_HOME.
    os.environ.setdefault("HF_XET_CHUNK_CACHE_SIZE_BYTES", "0")
    for source, path in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            link(Path(path), fetched(cache, source))
        except Exception as error:  # noqa: BLE001  its kind says what to do
            kind = kind_of(error)
            if kind == "failed":
                print(shown(traceback.format_exc()), file=sys.stderr)
            print(f"error: {kind}: {explained(kind, error, cache, source)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

"""What the end of an engine process says: its exit code and the last lines of its log.

Kubernetes keeps the last 2 KB of the log of a failed container as its termination message. The
patterns are those of SGLang 0.5.23 and the libraries under it.
"""

import re
from typing import Any

from sglang_controllers import names
from sglang_controllers.reasons import Reason
from sglang_controllers.redaction import excerpt

USAGE_ERROR = 2
"""argparse exits with it."""

NO_MEMORY_ON_GPU = re.compile(
    r"CUDA out of memory|OutOfMemoryError|HIP out of memory", re.IGNORECASE
)
NO_MEMORY_FOR_CACHE = re.compile(r"Not enough memory|no memory left for .*cache", re.IGNORECASE)
HUNG = re.compile(r"watchdog timeout \(self\.watchdog_timeout=(?P<seconds>[\d.]+).*soft=False")
TOO_LONG = re.compile(r"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
NO_TEMPLATE = re.compile(r"Chat template .* is not a built-in template name")
READ_ONLY = re.compile(r"Read-only file system: '?(?P<path>[^'\s]+)")
KILLED_WORKER = re.compile(r"died during initialization \(exit code: -9\)")
NO_MODEL = re.compile(
    r"does not appear to have a file named config\.json|Repo id must|HFValidationError"
    r"|is not a local folder and is not a valid model identifier|Can't load the configuration of"
    r"|Unrecognized model in|No such file or directory: '?/(model|draft-model|lora)"
    r"|Cannot find any model weights|Couldn't instantiate the backend tokenizer|SafetensorError|couldn't connect to|outgoing traffic has been disabled",
)
SOURCE_FIELDS = (
    (names.DRAFT_MOUNT, "the draft model's source in spec.speculative"),
    (names.LORA_MOUNT, "the adapter's source in spec.model.loraAdapters"),
)
ARGUMENT = re.compile(r"error: (?P<what>.+)$")
ERROR_LINE = re.compile(
    r"^(?:\[.*?\] )?[\w.]*(Error|Exception|Exit|Interrupt)\b.*:.+|.*\berror: .+"
)
STAMP = re.compile(r"^\[[^\]]*\d\d:\d\d:\d\d[^\]]*\] ")
AFTERMATH = re.compile(r"Received sigquit from a child process|kill_process_tree called|^Killed$")
"""What SGLang says of its own end once a worker process is gone: the cause stands before it."""


def engine_finding(container: str, ended: dict[str, Any], pod: str) -> tuple[Reason, str]:
    """Reason and message for a terminated container state. `pod` is the pod's name."""
    log_command = f"kubectl logs {pod} -c {container} --previous"
    log = ended.get("message") or ""
    code = ended.get("exitCode")
    if ended.get("reason") == "OOMKilled":
        return Reason.OUT_OF_MEMORY, (
            f"container {container} was killed at its memory limit. Raise "
            "spec.engine.resources.limits.memory"
        )
    if hung := HUNG.search(log):
        return Reason.ENGINE_HUNG, (
            f"one step of the engine took longer than {float(hung['seconds']):g} s, and SGLang's "
            "watchdog ended it. If a step may take so long, raise watchdog-timeout in "
            f"spec.engine.extraArgs. Its log says where it hung: {log_command}"
        )
    said = excerpt(telling_line(log))
    if KILLED_WORKER.search(log):
        return Reason.OUT_OF_MEMORY, (
            f"a process of container {container} was killed while it loaded the model, as the "
            "kernel does at a memory limit. Raise spec.engine.resources.limits.memory"
        )
    if NO_MEMORY_FOR_CACHE.search(log):
        return Reason.OUT_OF_MEMORY, (
            f"the weights leave too little memory for the KV cache: {said}. Raise "
            "spec.engine.memory.fractionStatic, or use more or larger accelerators"
        )
    if NO_MEMORY_ON_GPU.search(log):
        return Reason.OUT_OF_MEMORY, (
            f"the engine has too little accelerator memory: {said}. Use more or larger "
            "accelerators, raise spec.engine.parallelism.tensor or lower "
            "spec.engine.memory.fractionStatic"
        )
    if code == USAGE_ERROR and (refused := _refused_argument(log)):
        return Reason.BAD_ENGINE_ARGS, (
            f"SGLang refuses its arguments: {excerpt(refused)}. Correct spec.engine.extraArgs or "
            "the field behind the argument"
        )
    if NO_MODEL.search(log):
        return Reason.MODEL_NOT_FOUND, (
            f"the engine finds no model at {_source_field(said)}: {said}. It must be a folder with "
            "config.json, tokenizer and weights, all of them whole"
        )
    if TOO_LONG.search(log):
        return Reason.BAD_ENGINE_ARGS, (
            "spec.model.contextLength is more than the model's own limit. Lower it or remove it"
        )
    if NO_TEMPLATE.search(log):
        return Reason.BAD_ENGINE_ARGS, (
            f"{said}. Write one of SGLang's names or a file of the container into "
            "spec.model.chatTemplate"
        )
    if found := READ_ONLY.search(log):
        return Reason.ENGINE_CRASH, (
            f"the engine writes to {found['path']}, which is read-only: {said}. Mount a volume "
            f"there in spec.podTemplate, or set readOnlyRootFilesystem: false for the container "
            f"{container} in it"
        )
    how = f"exit code {code}" if code is not None else "an unknown exit code"
    if ended.get("reason") not in (None, "Error", "Completed"):
        how += f", {ended['reason']}"
    return Reason.ENGINE_CRASH, (
        f"container {container} ended with {how}"
        + (f": {said}" if said else " and left no message")
        + f". Its log: {log_command}"
    )


def _source_field(line: str) -> str:
    """The field behind the folder that a line of the log is about."""
    for folder, field in SOURCE_FIELDS:
        if folder in line:
            return field
    return "spec.model.source"


def _refused_argument(log: str) -> str:
    for line in reversed(log.splitlines()):
        found = ARGUMENT.search(line)
        if found:
            return found["what"]
    return ""


def telling_line(log: str) -> str:
    """The last line that looks like an error, else the last line there is."""
    stripped = (line.strip() for line in log.splitlines())
    lines = [line for line in stripped if line and not AFTERMATH.search(line)]
    errors = [line for line in lines if ERROR_LINE.match(line)]
    # The time of a line is new with each crash of the same cause.
    return STAMP.sub("", (errors or lines or [""])[-1])

"""The conversion of a launch command as a whole."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import yaml

from sglang_controllers import names
from sglang_controllers.api import InvalidSpec, parse_spec
from sglang_controllers.api.schema import NAME_PATTERN
from sglang_controllers.api.settings import ENGINE_VERSION, RESERVED
from sglang_controllers.arguments import argument_problems
from sglang_controllers.convert.arguments import Given, arguments_given
from sglang_controllers.convert.command import Command, NotALaunchError, launch_command
from sglang_controllers.convert.fields import Fields, take
from sglang_controllers.convert.sources import (
    NoSourceError,
    is_hub_id,
    last_part,
    source_of,
)
from sglang_controllers.manifest import Manifest

OFFICIAL_IMAGE = re.compile(r"(docker\.io/)?lmsysorg/sglang(:(?P<tag>[^@]+))?(@.+)?")

HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
SECRET = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS?|KEY|KEY_ID)$")

OPERATORS = frozenset(
    {
        "host",
        "nccl-port",
        "enable-metrics",
        "node-rank",
        "dist-init-addr",
        "nccl-init-addr",
        "disaggregation-bootstrap-port",
    }
)
"""Dropped without a word: the operator sets them itself, or has no use for them."""

SECRETS = ("api-key", "admin-api-key", "ssl-keyfile-password")
TLS = ("ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "enable-ssl-refresh")

MODEL_FLAGS = ("model-path", "model")
REVISION = "revision"


@dataclass(frozen=True, slots=True)
class Conversion:
    """`warnings` are what a user has to know or to do before applying the manifest."""

    manifest: Manifest
    warnings: tuple[str, ...]


class ConvertError(ValueError):
    """Why a command is not converted: each problem names the argument and what to do."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def converted(text: str, name: str | None = None) -> Conversion:
    """The SGLangCluster that runs what the launch command in `text` runs.

    Without a `name` the cluster is called like the model.
    """
    try:
        command = launch_command(text)
    except NotALaunchError as error:
        raise ConvertError([str(error)]) from error
    given, problems = arguments_given(command.arguments)
    fields = Fields(warnings=list(command.notes), problems=problems)
    rest = _reserved(given, fields)
    path = _model(given, fields)
    # The model's own tokenizer is the default, also where its hub id has become a folder.
    own = ("tokenizer-path", (path,))
    if is_hub_id(path):
        rest = [one for one in rest if (one.flag, one.values) != own and one.flag != REVISION]
    take(rest, fields)
    _surroundings(command, fields)
    cluster = name or _cluster_name(path)
    if len(cluster) > names.MAX_CLUSTER_NAME or not re.fullmatch(NAME_PATTERN, cluster):
        fields.problems.append(
            f'name: got "{cluster}"; a name has at most {names.MAX_CLUSTER_NAME} characters: a '
            "small letter, then small letters, digits and dashes; write another one"
        )
    if not fields.problems:
        fields.problems += _refused(fields)
    if fields.problems:
        raise ConvertError(fields.problems)
    return Conversion(_manifest(cluster, fields.spec), tuple(dict.fromkeys(fields.warnings)))


def as_yaml(conversion: Conversion) -> str:
    """The manifest as a file, its warnings as comments on top."""
    head = "".join(f"# - {warning}\n" for warning in conversion.warnings)
    if head:
        head = f"# See to this before you apply it:\n{head}"
    return head + yaml.safe_dump(
        conversion.manifest, sort_keys=False, width=100, allow_unicode=True
    )


def _reserved(given: Sequence[Given], fields: Fields) -> list[Given]:
    """What is left when the operator's own arguments are taken out."""
    left: list[Given] = []
    said = {one.flag: one for one in given}
    for one in given:
        if one.flag in OPERATORS or one.flag in MODEL_FLAGS:
            continue
        handled = HANDLED.get(one.flag)
        if handled is not None:
            if said[one.flag] is one:
                handled(one, fields)
        elif fix := _owners_fix(one.flag):
            fields.problems.append(f"{one.spelled}: {fix}")
        else:
            left.append(one)
    return left


def _owners_fix(flag: str) -> str | None:
    found = (reserved.fix for reserved in RESERVED if flag in reserved.flags)
    fix = next(found, None)
    return f"the operator sets it or does without; {fix}" if fix else None


def _nodes(one: Given, fields: Fields) -> None:
    if one.values != ("1",):
        fields.problems.append(
            f"{one.spelled}: got {one.values[0]}; engines that span nodes are not supported yet; "
            "convert a command for one node"
        )


def _disaggregation(one: Given, fields: Fields) -> None:
    if one.values != ("null",):
        fields.problems.append(
            f"{one.spelled}: got {one.values[0]}; separate engines for prefill and decode are not "
            "supported yet; convert a command without it"
        )


def _secret(one: Given, fields: Fields) -> None:
    fields.warnings.append(
        f"{one.spelled}: not copied, whoever sees a pod reads its arguments; put the key into a "
        "Secret and name it in spec.router.apiKeySecretRef. Engines themselves answer without a "
        "key: admit nobody but routers to them with a NetworkPolicy"
    )


def _tls(one: Given, fields: Fields) -> None:
    fields.warnings.append(
        f"{one.spelled}: not copied, probes and the Service speak plain HTTP; end TLS in front of "
        "the Service"
    )


def _served_name(one: Given, fields: Fields) -> None:
    fields.put("model.servedName", one.values[0], one)


def _port(one: Given, fields: Fields) -> None:
    fields.warnings.append(
        f"{one.spelled}: not copied, clients find the engines at port {names.SERVICE_PORT} of the "
        "Service"
    )


def _own_accelerators(one: Given, fields: Fields) -> None:
    fields.warnings.append(f"{one.spelled}: left out, a pod sees only its own accelerators")


HANDLED: Mapping[str, Callable[[Given, Fields], None]] = {
    "nnodes": _nodes,
    "disaggregation-mode": _disaggregation,
    "served-model-name": _served_name,
    "port": _port,
    "base-gpu-id": _own_accelerators,
    "gpu-id-step": _own_accelerators,
    **dict.fromkeys(SECRETS, _secret),
    **dict.fromkeys(TLS, _tls),
}


def _model(given: Sequence[Given], fields: Fields) -> str:
    """Set source and served name; the answer is the model as the command calls it."""
    one = next((one for one in reversed(given) if one.flag in MODEL_FLAGS), None)
    if one is None:
        fields.problems.append("--model-path: is missing; add it")
        return "model"
    path = one.values[0]
    revision = next((g.values[0] for g in reversed(given) if g.flag == REVISION), "")
    try:
        named = f"{path}@{revision}" if revision and is_hub_id(path) else path
        source = source_of(named, "spec.model.source", fields.warnings.append)
    except NoSourceError as error:
        fields.problems.append(f"{one.spelled}: {error}")
        return path
    model = {"source": source, "servedName": path} | fields.spec.pop("model", {})
    fields.spec = {"model": model, **fields.spec}
    fields.spelled["model.source"] = one.spelled
    return path


def _surroundings(command: Command, fields: Fields) -> None:
    engine = fields.spec.setdefault("engine", {})
    if engine.get("extraArgs", {}).get("device") == "cpu":
        engine["accelerator"] = {"count": 0}
    if command.shared_memory:
        engine["sharedMemory"] = _quantity(command.shared_memory)
    _image(command.image, fields)
    env = [
        variable for name, value in command.env.items() for variable in _env(name, value, fields)
    ]
    if env:
        engine["env"] = env


def _env(name: str, value: str, fields: Fields) -> list[dict[str, str]]:
    if name in DEVICES:
        fields.warnings.append(f"{name}: left out, Kubernetes gives a pod its accelerators")
    elif name in HUB_TOKENS:
        fields.warnings.append(
            f"{name}: a secret is not copied; put it into a Secret and name that in "
            "spec.model.tokenSecretRef"
        )
    elif name == "HF_ENDPOINT":
        fields.spec["model"]["hubEndpoint"] = value
    elif name == "SGLANG_USE_MODELSCOPE" and fields.spec["model"]["source"].startswith("hf://"):
        fields.problems.append(
            f"{name}: hf:// asks a hub with Hugging Face's API, and ModelScope has another; "
            "convert without it, and write pvc://CLAIM/PATH for the folder you downloaded to"
        )
    elif SECRET.search(name):
        fields.warnings.append(
            f"{name}: a secret is not copied; put it into a Secret and name that in "
            "spec.engine.env with valueFrom.secretKeyRef"
        )
    else:
        return [{"name": name, "value": value}]
    return []


def _image(image: str | None, fields: Fields) -> None:
    official = OFFICIAL_IMAGE.fullmatch(image) if image else None
    if image is None or (official and official["tag"] == f"v{ENGINE_VERSION}"):
        return
    if official:
        fields.warnings.append(
            f"{image}: left out, the command was checked for SGLang {ENGINE_VERSION}, which the "
            "operator runs"
        )
    else:
        fields.spec["engine"]["image"] = image
        fields.warnings.append(
            f"spec.engine.image: {image} must run as uid 1000 and hold SGLang {ENGINE_VERSION}"
        )


def _quantity(size: str) -> str:
    """Docker's 32g is 32Gi."""
    match = re.fullmatch(r"(\d+)([bkmg]?)b?", size.lower())
    units = {"": "", "b": "", "k": "Ki", "m": "Mi", "g": "Gi"}
    return f"{match[1]}{units[match[2]]}" if match else size


def _cluster_name(path: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", last_part(path).lower()).strip("-")
    name = name if name[:1].isalpha() else f"model-{name}"
    return name[: names.MAX_CLUSTER_NAME].rstrip("-")


def _refused(fields: Fields) -> list[str]:
    """What the API or SGLang would say to the spec, with the arguments that it comes from."""
    try:
        spec = parse_spec(fields.spec)
    except InvalidSpec as refusal:
        found: Sequence[str] = refusal.problems
    else:
        found = argument_problems(spec)
    return [_with_argument(problem, fields.spelled) for problem in found]


def _with_argument(problem: str, spelled: dict[str, str]) -> str:
    """`problem` with the argument before it that set the field, or something in it."""
    path = problem.partition(": ")[0].removeprefix("spec.")
    while "." in path:
        within = (spelled[field] for field in reversed(spelled) if field.startswith(f"{path}."))
        argument = spelled.get(path) or next(within, None)
        if argument:
            return f"{argument}: {problem}"
        path = re.sub(r"(\[[^\]]*\]|\.[^.\[]*)$", "", path)
    return problem


def _manifest(name: str, spec: Manifest) -> Manifest:
    order = ("model", "engine", "cache", "scheduling", "speculative")
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {"replicas": 1, **{key: spec[key] for key in order if spec.get(key)}},
    }

"""`spec.model`: the files that are served, and how they are read."""

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from sglang_controllers.api.kubernetes import KeySelector, Quantity
from sglang_controllers.api.model import Model, Rule, Worded, each_once, list_map
from sglang_controllers.api.source import (
    CLAIM_PATTERN,
    FORMS,
    HUB_PATTERN,
    IMAGE_PATH_PATTERN,
    OCI_PATTERN,
    PARENT_PATTERN,
    parse_source,
)

Word = Annotated[
    str,
    Worded(
        r"^[A-Za-z0-9][A-Za-z0-9._+-]*$",
        'a name has letters, digits and . _ + -, and no blanks; write for example "fp8"',
        64,
    ),
]
"""A name out of a list that SGLang's versions and plugins extend: checked against the list of the
engine's version, not by the CRD."""

Path = Annotated[
    str, Worded(r"^\S+$", 'a path has no blanks; write for example "/model/chat.jinja"', 512)
]

Claim = Annotated[
    str,
    Worded(
        r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        'a claim is named in small letters, digits, dashes and dots; write for example "models"',
        253,
    ),
]
NodeFolder = Annotated[
    str,
    Worded(r"^/[^\s]+$", 'must be an absolute path without blanks; write "/var/lib/models"', 512),
]
Endpoint = Annotated[
    str,
    Worded(
        r"^https?://[^\s]+$",
        'must be an address with http:// or https://; write "https://hub.example.com"',
        512,
    ),
]
ServedName = Annotated[
    str,
    Worded(
        r"^[^:\s]+$",
        'a name has no colon, which stands before the name of an adapter, and no blanks; write "chat"',
        256,
    ),
]
AdapterName = Annotated[
    str,
    Worded(
        r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        'a name has letters, digits and . _ -, the first and last a letter or digit; write "sql"',
        63,
    ),
]


class Dtype(StrEnum):
    AUTO = "auto"
    HALF = "half"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT = "float"
    FLOAT32 = "float32"


class KvCacheDtype(StrEnum):
    AUTO = "auto"
    BF16 = "bf16"
    BFLOAT16 = "bfloat16"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    MXFP8 = "mxfp8"
    NVFP4 = "nvfp4"
    FP4_MX_BLOCK16 = "fp4_mx_block16"


def _source_holds(files: Any) -> bool:
    try:
        parse_source(files.source)
    except ValueError:
        return False
    return True


SOURCE_RULE = Rule(
    field="source",
    message=FORMS,
    seen="source",
    cel=f"(self.source.matches(r'{OCI_PATTERN}') || self.source.matches(r'{CLAIM_PATTERN}')"
    f" || self.source.matches(r'{IMAGE_PATH_PATTERN}') || self.source.matches(r'{HUB_PATTERN}'))"
    f" && !self.source.matches(r'{PARENT_PATTERN}')",
    holds=_source_holds,
)


class LoraAdapter(Model):
    """A LoRA adapter that the engine loads when it starts."""

    name: AdapterName
    """Name under which clients ask for it: `<served name>:<name>`."""

    source: str = Field(max_length=512)
    """Where its files are: `hf://ORG/NAME@REVISION`, downloaded like the model, `oci://IMAGE` or
    `pvc://CLAIM/PATH`, mounted at `/lora/<name>`, or `image:///PATH`, a folder that is in the
    engine's container already, also one below the model."""

    rules = (SOURCE_RULE,)


class DraftModel(Model):
    """A small model that drafts the tokens."""

    source: str = Field(max_length=512)
    """Where its files are: `hf://ORG/NAME@REVISION`, downloaded like the model, `oci://IMAGE` or
    `pvc://CLAIM/PATH`, mounted at `/draft-model`, or `image:///PATH`, a folder that is in the
    engine's container already."""

    rules = (SOURCE_RULE,)


class CacheClaim(Model):
    """A claim of this namespace. Replicas on several nodes need one that is ReadWriteMany."""

    claim_name: Claim
    """Name of the PersistentVolumeClaim."""

    path: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._/-]*$", max_length=512)
    """Folder of the volume, made when missing. Default: the volume's root."""

    rules = (
        Rule(
            field="path",
            message="a path has no '..' and no leading '/'; write \"models/hub\"",
            cel="!has(self.path) || !(self.path.startsWith('/') || "
            "self.path.matches(r'(^|/)[.][.](/|$)'))",
            holds=lambda claim: not claim.path or not re.search(r"^/|(^|/)\.\.(/|$)", claim.path),
        ),
    )


class CacheFolder(Model):
    """A folder of the node. The restricted Pod Security Standard does not allow it."""

    path: NodeFolder
    """Absolute path on the node. It must be there, and uid 1000 must be allowed to write it."""


class CacheScratch(Model):
    """A folder that goes with the pod."""

    size_limit: Quantity | None = None
    """Most that it may hold; a pod that exceeds it is evicted. Default: what the node has."""


class ModelCache(Model):
    """Where downloads are kept: at most one of the fields. Default: emptyDir."""

    pvc: CacheClaim | None = None
    """A claim, shared by all replicas: one of them downloads, the others find the files."""

    host_path: CacheFolder | None = None
    """A folder of the node, shared by all replicas on it, also of other clusters."""

    empty_dir: CacheScratch | None = None
    """A folder of the pod: each new pod downloads for itself."""

    rules = (
        Rule(
            field="",
            message="pvc, hostPath and emptyDir exclude each other; remove all but one",
            cel="[has(self.pvc), has(self.hostPath), has(self.emptyDir)]"
            ".filter(one, one).size() <= 1",
            holds=lambda cache: (
                sum(one is not None for one in (cache.pvc, cache.host_path, cache.empty_dir)) <= 1
            ),
        ),
    )


class ModelFiles(Model):
    source: str = Field(max_length=512)
    """Where the model's files are. `hf://ORG/NAME@REVISION` is downloaded before the engine starts
    (a commit as REVISION is the same for every replica; without one: `main`), `oci://IMAGE` is
    mounted (Kubernetes 1.35, or 1.33 with the feature ImageVolume), `pvc://CLAIM/PATH` too, and
    `image:///PATH` is a folder of the engine's image."""

    token_secret_ref: KeySelector | None = None
    """Key of a Secret of this namespace that holds a hub token, for gated and private models. Only
    the download sees it; the operator never reads it. Used by `hf://` sources."""

    hub_endpoint: Endpoint | None = None
    """Address of a mirror that serves the hub's API. Used by `hf://` sources. Default
    `https://huggingface.co`."""

    cache: ModelCache = Field(default_factory=ModelCache)
    """Where the downloads of `hf://` sources are kept. Default: in the pod, and gone with it."""

    served_name: ServedName | None = None
    """Name under which clients ask for the model. Default: the cluster's name."""

    dtype: Annotated[Dtype | None, Field(strict=False)] = None
    """Number format of weights and activations. Default `auto`: the checkpoint's, with float32
    lowered to float16."""

    quantization: Word | None = None
    """How the weights are quantized, for example `fp8`, `awq` or `w4afp8`. Default: what the
    checkpoint says."""

    kv_cache_dtype: Annotated[KvCacheDtype | None, Field(strict=False)] = None
    """Number format of the KV cache. Formats of 8 and 4 bits hold more tokens and need an
    accelerator that has them. Default `auto`: the model's."""

    trust_remote_code: bool | None = None
    """True runs Python code that comes with the model's files. Default false."""

    context_length: int | None = Field(default=None, ge=1, le=100_000_000)
    """Most tokens of a request, prompt and answer together. Default: the model's own limit."""

    tokenizer_path: Path | None = None
    """Folder of the tokenizer in the engine's container. Default: the model's."""

    chat_template: Path | None = None
    """Name of one of SGLang's chat templates, or a file in the engine's container, for example
    `/model/chat.jinja`. Default: the model's own."""

    reasoning_parser: Word | None = None
    """Splits thoughts from answers, for example `qwen3` or `deepseek-r1`. Default: off."""

    tool_call_parser: Word | None = None
    """Reads tool calls out of answers, for example `qwen3_coder` or `glm`. Default: off."""

    lora_adapters: Annotated[list[LoraAdapter], each_once("name")] = Field(
        default_factory=list, max_length=32, json_schema_extra=list_map("name")
    )
    """LoRA adapters served beside the model. Default: none."""

    rules = (SOURCE_RULE,)

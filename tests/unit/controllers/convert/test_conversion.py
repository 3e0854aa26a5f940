"""Launch commands become SGLangClusters that run the same, or are refused in useful words."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sglang_controllers.api import parse_spec
from sglang_controllers.api.flags import FLAGS, Takes
from sglang_controllers.api.settings import SETTINGS, WARMING
from sglang_controllers.arguments import engine_arguments
from sglang_controllers.convert import ConvertError, as_yaml, converted

DATA = Path(__file__).parents[3] / "data"
COMMANDS = [
    line
    for line in (DATA / "launch_commands.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
REFUSED: list[dict[str, str]] = yaml.safe_load((DATA / "refused_commands.yaml").read_text())

NAMES = {alias: s.flag for s in SETTINGS for alias in s.aliases} | {"model": "model-path"}
OPERATORS = {
    "model-path",
    "served-model-name",
    "host",
    "port",
    "enable-metrics",
    "nnodes",
    "node-rank",
    "api-key",
}
"""Arguments that the operator sets itself, or that are not copied."""

Arguments = dict[str, tuple[Any, ...]]

LAUNCH = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B"


def arguments_of(tokens: list[str]) -> Arguments:
    """What `tokens` say, however it is spelled."""
    said: Arguments = {}
    flag = ""
    for token in tokens:
        if token.startswith("-") and not token[1:].isdigit():
            name, equals, value = token.lstrip("-").partition("=")
            flag = whole_name(name)
            said[flag] = (plain(flag, value),) if equals else ()
        else:
            said[flag] = (*said[flag], plain(flag, token))
    return {flag: values for flag, values in said.items() if flag not in OPERATORS}


def whole_name(name: str) -> str:
    (flag,) = [name] if name in FLAGS else [f for f in FLAGS if f.startswith(name)]
    return NAMES.get(flag, flag)


def plain(flag: str, text: str) -> Any:
    """A value that means the same is the same: 16Ki and 16384, JSON with and without spaces."""
    if flag == "speculative-draft-model-path" and not text.startswith("/"):
        return f"/cache/models/draft-model/{text}"
    if flag == "speculative-algorithm":
        return text.upper()
    if text.endswith("Ki"):
        return int(text.removesuffix("Ki")) * 1024
    try:
        return json.loads(text) if FLAGS[flag] is not Takes.LIST else int(text)
    except ValueError:
        return text


def written(command: str) -> Arguments:
    tokens = shlex.split(command)
    start = next(i for i, t in enumerate(tokens) if t in ("sglang.launch_server", "serve"))
    given = tokens[start + 1 :]
    return arguments_of(given if given[0].startswith("-") else given[1:])


def rendered(command: str) -> Arguments:
    spec = parse_spec(converted(command).manifest["spec"])
    return arguments_of(list(engine_arguments(spec, cluster_name="chat")))


def spec_of(command: str) -> dict[str, Any]:
    return dict(converted(command).manifest["spec"])


def warnings_of(command: str) -> str:
    return "\n".join(converted(command).warnings)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_result_has_the_arguments_of_the_command(command: str) -> None:
    assert rendered(command) == written(command)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["command"])
def test_what_cannot_be_converted_is_answered_with_the_argument_and_what_to_do(
    case: dict[str, str],
) -> None:
    with pytest.raises(ConvertError) as refused:
        converted(case["command"])

    (problem,) = refused.value.problems
    assert problem.startswith(f"{case['names']}: ")
    assert case["says"] in problem


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ConvertError) as refused:
        converted(f"{LAUNCH} --tp two --no-such-flag --nnodes 2")

    assert [problem.split(":")[0] for problem in refused.value.problems] == [
        "--tp",
        "--no-such-flag",
        "--nnodes",
    ]


def typed_flags() -> Iterator[str]:
    for setting in SETTINGS:
        if setting.field != WARMING:  # whoever asks for KV events by hand has a use of their own
            yield from (setting.flag, *setting.aliases)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_argument_with_a_field_stays_an_extra_argument(command: str) -> None:
    engine = spec_of(command).get("engine", {})
    free = set() if "DFLASH" not in command else {f for f in FLAGS if f.startswith("speculative")}

    assert set(engine.get("extraArgs", {})) & set(typed_flags()) - free == set()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3-1-8b-instruct"),
        ("/srv/models/Qwen3/", "qwen3"),
        ("01-ai/34B", "model-34b"),
        ("a/" + "b" * 80, "b" * 52),
    ],
)
def test_a_cluster_without_a_name_is_called_like_its_model(path: str, name: str) -> None:
    manifest = converted(f"python -m sglang.launch_server --model-path {path}").manifest

    assert manifest["metadata"] == {"name": name}


def test_a_given_name_is_the_clusters() -> None:
    assert converted(LAUNCH, name="chat").manifest["metadata"] == {"name": "chat"}


def test_a_bad_name_is_refused() -> None:
    with pytest.raises(ConvertError, match=r'name: got "Chat"; .* write another one'):
        converted(LAUNCH, name="Chat")


def test_clients_go_on_to_ask_for_the_model_as_the_command_called_it() -> None:
    assert spec_of(LAUNCH)["model"]["servedName"] == "Qwen/Qwen3-8B"
    assert spec_of(f"{LAUNCH} --served-model-name chat")["model"]["servedName"] == "chat"


def test_a_hub_id_is_downloaded_and_the_user_is_told_what_that_means() -> None:
    assert spec_of(LAUNCH)["model"]["source"] == "hf://Qwen/Qwen3-8B"
    assert "every new pod downloads Qwen/Qwen3-8B" in warnings_of(LAUNCH)
    assert "main may change between two pods" in warnings_of(LAUNCH)


def test_a_revision_belongs_to_the_source() -> None:
    commit = "9c925d64d72725edaf899c6cb9c377fd0709d9c5"
    spec = spec_of(f"{LAUNCH} --revision {commit}")

    assert spec["model"]["source"] == f"hf://Qwen/Qwen3-8B@{commit}"
    assert "extraArgs" not in spec.get("engine", {})
    assert "may change between two pods" not in warnings_of(f"{LAUNCH} --revision {commit}")


def test_the_revision_of_a_folder_stays_an_argument() -> None:
    spec = spec_of("python -m sglang.launch_server --model-path /srv/model --revision v1")

    assert spec["engine"]["extraArgs"] == {"revision": "v1"}


def test_a_draft_model_of_a_hub_takes_its_revision_along() -> None:
    spec = spec_of(
        f"{LAUNCH} --speculative-algorithm STANDALONE --speculative-draft-model-path a/small "
        "--speculative-draft-model-revision v2"
    )

    assert spec["speculative"]["standalone"]["draftModel"]["source"] == "hf://a/small@v2"
    assert "engine" not in spec


def test_a_hub_token_is_not_copied_and_its_field_is_named() -> None:
    conversion = converted(f"HF_TOKEN=hf_secret {LAUNCH}")

    assert "hf_secret" not in as_yaml(conversion)
    assert "HF_TOKEN: a secret is not copied" in "\n".join(conversion.warnings)
    assert "spec.model.tokenSecretRef" in "\n".join(conversion.warnings)


def test_a_mirror_of_the_hub_is_a_field() -> None:
    spec = spec_of(f"HF_ENDPOINT=https://hub.example.com {LAUNCH}")

    assert spec["model"]["hubEndpoint"] == "https://hub.example.com"
    assert "env" not in spec.get("engine", {})


def test_a_hub_with_another_api_is_refused() -> None:
    with pytest.raises(ConvertError, match="SGLANG_USE_MODELSCOPE: hf:// asks a hub with"):
        converted(f"SGLANG_USE_MODELSCOPE=true {LAUNCH}")


def test_a_path_becomes_a_folder_of_the_image_and_the_user_is_told_so() -> None:
    command = "python -m sglang.launch_server --model-path /srv/model"

    assert spec_of(command)["model"]["source"] == "image:///srv/model"
    assert "expects /srv/model inside the engine's image" in warnings_of(command)


def test_the_tokenizer_of_the_hubs_model_is_the_models_own() -> None:
    command = f"{LAUNCH} --tokenizer-path Qwen/Qwen3-8B"

    assert "tokenizerPath" not in spec_of(command)["model"]


def test_another_hub_id_of_a_tokenizer_is_warned_of() -> None:
    assert "--tokenizer-path: engines download nothing" in warnings_of(
        f"{LAUNCH} --tokenizer-path Qwen/Qwen3-4B"
    )


def test_the_hub_id_of_a_draft_model_without_a_field_is_warned_of() -> None:
    command = f"{LAUNCH} --speculative-algorithm DSPARK --speculative-draft-model-path a/speculator"

    assert "mount a/speculator with spec.podTemplate" in warnings_of(command)


def test_an_adapter_is_mounted_under_its_name() -> None:
    command = f"""{LAUNCH} --lora-paths a=/x/a team/b '{{"lora_name":"c","lora_path":"/x/c"}}'"""

    assert spec_of(command)["model"]["loraAdapters"] == [
        {"name": "a", "source": "image:///x/a"},
        {"name": "b", "source": "hf://team/b"},
        {"name": "c", "source": "image:///x/c"},
    ]
    assert "clients ask for the adapter team/b as b from now on" in warnings_of(command)


def test_a_pinned_adapter_is_warned_of() -> None:
    command = f"""{LAUNCH} --lora-paths '{{"lora_name":"c","lora_path":"/c","pinned":true}}'"""

    assert "c is not pinned" in warnings_of(command)


@pytest.mark.parametrize("flag", ["--api-key", "--admin-api-key"])
def test_a_key_is_never_copied(flag: str) -> None:
    conversion = converted(f"{LAUNCH} {flag} s3cret")

    assert "s3cret" not in as_yaml(conversion)
    assert f"{flag}: not copied" in "\n".join(conversion.warnings)


def test_tls_is_left_to_what_stands_in_front_of_the_service() -> None:
    command = f"{LAUNCH} --ssl-keyfile /k --ssl-certfile /c"

    assert "engine" not in spec_of(command)
    assert "--ssl-keyfile: not copied" in warnings_of(command)


@pytest.mark.parametrize(
    ("flags", "switch"),
    [
        ("--hicache-ratio 2", "--enable-hierarchical-cache"),
        (
            "--enable-hicache --hicache-storage-prefetch-policy timeout",
            "--hicache-storage-backend",
        ),
        ("--default-priority-value 1", "--enable-priority-scheduling"),
        ("--speculative-ngram-capacity 10000", "--speculative-algorithm NGRAM"),
    ],
)
def test_what_has_no_effect_is_left_out_and_said(flags: str, switch: str) -> None:
    flag = flags.split()[-2]

    assert f"{flag}: has no effect without {switch}; left out" in warnings_of(f"{LAUNCH} {flags}")
    assert flag.lstrip("-") not in rendered(f"{LAUNCH} {flags}")


def test_the_last_of_two_values_counts_as_in_sglang() -> None:
    assert rendered(f"{LAUNCH} --tp 2 --tp-size 4") == {"tp-size": (4,)}


def test_an_engine_on_the_cpu_asks_for_no_accelerator() -> None:
    assert spec_of(f"{LAUNCH} --device cpu")["engine"]["accelerator"] == {"count": 0}


def test_the_file_begins_with_what_the_user_has_to_see_to() -> None:
    text = as_yaml(converted(f"{LAUNCH} --api-key s3cret"))

    assert text.startswith("# See to this before you apply it:\n# - --api-key: not copied")
    assert yaml.safe_load(text) == converted(LAUNCH).manifest


def test_another_port_is_told_since_clients_have_to_know() -> None:
    assert "--port: not copied, clients find the engines at port 8000" in warnings_of(
        f"{LAUNCH} --port 9000"
    )


def test_a_flag_that_asks_for_the_default_is_not_answered_with_its_contrary() -> None:
    with pytest.raises(ConvertError) as refused:
        converted(f"{LAUNCH} --enable-overlap-schedule")

    (problem,) = refused.value.problems
    assert problem.endswith(
        "it is the default, for --disable-overlap-schedule changes it; remove it"
    )


@pytest.mark.parametrize(
    "command",
    [
        f"{LAUNCH} \\  \n  --tp 2",
        f"{LAUNCH} \\\n  # two accelerators\n  --tp 2",
        f"{LAUNCH} --tp 2  # two accelerators",
        f"{LAUNCH} \u2014tp 2",
    ],
)
def test_a_command_is_read_as_it_comes_from_a_page(command: str) -> None:
    assert rendered(command) == {"tp-size": (2,)}


def test_which_accelerators_a_process_takes_is_no_business_of_a_pod() -> None:
    command = f"{LAUNCH} --base-gpu-id 4"

    assert "extraArgs" not in spec_of(command).get("engine", {})
    assert "--base-gpu-id: left out" in warnings_of(command)


def test_the_negation_of_a_switch_that_is_off_is_answered() -> None:
    with pytest.raises(ConvertError, match="it is the default, for --disable-radix-cache"):
        converted(f"{LAUNCH} --no-disable-radix-cache")

"""The shell's part of a launch command: variables, containers, quotes, and where SGLang begins."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
EXPANSION = re.compile(r"\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\$\(|`")
AFTERWARDS = re.compile(r"(\||&|\d?>|<).*")
PYTHON = re.compile(r"python[0-9.]*")

LAUNCHERS = ("sglang.launch_server",)
ROUTERS = ("sglang_router.launch_router", "sglang_router.launch_server", "smg")

TRANSPARENT = ("sudo", "nohup", "exec", "time", "env", "command")
RUNNERS = ("uv", "poetry", "pipenv")
CONTAINERS = ("docker", "podman", "nerdctl")
SHELLS = ("bash", "sh")

_VALUED = """
    -e --env --env-file -v --volume --mount -p --publish --name --gpus --shm-size --ipc --network
    --net --ulimit --device --entrypoint -w --workdir -u --user --runtime --restart -h --hostname
    -m --memory --cpus --cpuset-cpus -l --label --add-host --cap-add --security-opt --pid
    --log-opt --log-driver --group-add --platform --pull --tmpfs --cgroupns
"""
VALUED = frozenset(_VALUED.split())
"""Options of `docker run` that take a value."""


class NotALaunchError(ValueError):
    """Why text is not one launch command, in a sentence."""


@dataclass(slots=True)
class Command:
    """`arguments` are SGLang's own. None: not said. `notes` say what is not taken over."""

    arguments: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    image: str | None = None
    shared_memory: str | None = None
    notes: list[str] = field(default_factory=list)


def launch_command(text: str) -> Command:
    """The one launch of SGLang in `text`. NotALaunchError when there is none, or more."""
    command, launches = Command(), 0
    for statement in _statements(text):
        if _sets_variables(statement):
            command.env |= _variables(statement)
        elif statement[0] == "set":
            continue
        elif statement[0] == "cd":
            command.notes.append(f"{' '.join(statement)}: paths are absolute in a pod; left out")
        else:
            _launch(statement, command)
            launches += 1
    _check_expansions([*command.arguments, *command.env.values()])
    if launches != 1:
        raise NotALaunchError(
            f"command: holds {launches} launches of SGLang; one is converted at a time; give "
            '"python3 -m sglang.launch_server ..." or "sglang serve ..."'
        )
    return command


def _statements(text: str) -> Iterator[list[str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    # A backslash at the end of a line, or a line that begins with a flag, continues a command. Blanks
    # behind the backslash, and long dashes, come with copies from a page.
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    joined = re.sub(r"(?<!\S)[\u2013\u2014](?=[a-z])", "--", joined)
    joined = re.sub(r"\n\s*(?=-)", " ", joined)
    for line in joined.splitlines():
        try:
            tokens = shlex.split(line, comments=True)
        except ValueError as error:
            raise NotALaunchError(f"command: {error}; close the quotes") from error
        statement: list[str] = []
        for token in tokens:
            if token in ("&&", ";"):
                yield from [statement] if statement else []
                statement = []
            elif token.endswith(";"):
                yield [*statement, token[:-1]]
                statement = []
            else:
                statement.append(token)
        if statement:
            yield statement


def _sets_variables(statement: Sequence[str]) -> bool:
    rest = statement[1:] if statement[0] == "export" else statement
    return all(ASSIGNMENT.fullmatch(token) for token in rest)


def _variables(statement: Sequence[str]) -> dict[str, str]:
    found = (ASSIGNMENT.fullmatch(token) for token in statement)
    return {match[1]: match[2] for match in found if match}


def _launch(statement: Sequence[str], command: Command) -> None:
    inner = next((i for i, token in enumerate(statement) if _is_script(token)), None)
    if inner is not None:
        before = [token for token in statement[:inner] if token not in SHELLS]
        _surroundings([token for token in before if not re.fullmatch(r"-l?c", token)], command)
        within = launch_command(statement[inner])
        command.arguments = within.arguments
        command.env |= within.env
        command.notes += within.notes
        return
    start, arguments = _launcher(statement)
    _surroundings(statement[:start], command)
    end = next((i for i, token in enumerate(arguments) if AFTERWARDS.fullmatch(token)), None)
    if end is not None:
        command.notes.append(f"{' '.join(arguments[end:])}: a pod logs by itself; left out")
    command.arguments = list(arguments[:end])


def _check_expansions(tokens: Sequence[str]) -> None:
    for token in tokens:
        if match := EXPANSION.search(token):
            raise NotALaunchError(
                f"command: {match[0]} stands for something only your shell knows; write its value"
            )


def _is_script(token: str) -> bool:
    return " " in token and any(name in token for name in (*LAUNCHERS, "sglang serve"))


def _launcher(statement: Sequence[str]) -> tuple[int, list[str]]:
    """Where the launcher begins, and what follows it."""
    for index, token in enumerate(statement):
        name = PurePosixPath(token).name
        rest = list(statement[index + 1 :])
        if PYTHON.fullmatch(name):
            while rest[:1] and rest[0] in ("-u", "-O"):
                rest.pop(0)
            if rest[:1] == ["-m"] and rest[1:2] and rest[1] in LAUNCHERS:
                return index, rest[2:]
            if rest[:1] == ["-m"] and rest[1:2] and rest[1] in ROUTERS:
                break
        if name == "sglang" and rest[:1] == ["serve"]:
            return index, _served(rest[1:])
    if any(token in ROUTERS for token in statement):
        raise NotALaunchError(
            "command: launches a router; routers are not supported yet; convert the command of an "
            "engine"
        )
    raise NotALaunchError(
        f'command: "{" ".join(statement)[:60]}" does not launch SGLang; give '
        '"python3 -m sglang.launch_server ..." or "sglang serve ..."'
    )


def _served(arguments: list[str]) -> list[str]:
    """`sglang serve` takes the model without a flag, too."""
    if arguments and not arguments[0].startswith("-"):
        return ["--model-path", *arguments]
    return arguments


def _surroundings(tokens: Sequence[str], command: Command) -> None:
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        name = PurePosixPath(token).name
        if match := ASSIGNMENT.fullmatch(token):
            command.env[match[1]] = match[2]
        elif name in CONTAINERS and "run" in rest:
            _container(rest[rest.index("run") + 1 :], command)
            return
        elif name in RUNNERS and rest[:1] == ["run"]:
            rest.pop(0)
        elif name not in TRANSPARENT:
            raise NotALaunchError(
                f'command: "{token}" before the launch is not understood; remove it'
            )


def _container(tokens: list[str], command: Command) -> None:
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        if not token.startswith("-"):
            command.image = token
            return
        option, equals, value = token.partition("=")
        if not equals:
            value = rest.pop(0) if option in VALUED and rest else ""
        if option in ("-e", "--env"):
            _container_variable(value, command)
        elif option == "--shm-size":
            command.shared_memory = value
        elif option in ("-v", "--volume", "--mount"):
            command.notes.append(
                f"{option} {value}: volumes are not taken over; write spec.model.source as "
                "pvc://CLAIM/PATH or oci://IMAGE, and other volumes into spec.podTemplate"
            )


def _container_variable(value: str, command: Command) -> None:
    name, equals, text = value.partition("=")
    if equals:
        command.env[name] = text
    else:
        command.notes.append(f"-e {name}: its value is in your shell; add it to spec.engine.env")

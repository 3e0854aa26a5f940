"""What the agent's image is built with."""

import importlib.util
import re
import sys
from pathlib import Path

from multidict import MultiDict

from tests.unit.images.test_versions import ROOT, argument

SHRINK = ROOT / "images/agent/shrink.py"


def shrunk(library: bytes) -> bytes:
    spec = importlib.util.spec_from_file_location("shrink", SHRINK)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result: bytes = module.shrunk(library)
    return result


def test_the_agent_is_built_on_what_the_operator_is_built_on() -> None:
    for name in ("BASE", "UV"):
        assert argument("images/agent/Dockerfile", name) == argument("Dockerfile", name)


def test_a_shrunk_library_is_smaller_and_works(tmp_path: Path) -> None:
    library = Path(sys.modules[MultiDict.__module__].__file__ or "")
    path = tmp_path / library.name
    path.write_bytes(shrunk(library.read_bytes()))

    spec = importlib.util.spec_from_file_location("multidict._multidict", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert path.stat().st_size < library.stat().st_size / 2
    assert module.MultiDict([("a", 1), ("a", 2)]).getall("a") == [1, 2]


def test_what_is_no_library_stays_as_it_is() -> None:
    assert shrunk(b"/* GNU ld script */") == b"/* GNU ld script */"


def test_the_agent_needs_little() -> None:
    text = (ROOT / "images/agent/pyproject.toml").read_text()

    needed = re.findall(r'"([a-z-]+)[">]', text.partition("dependencies")[2].partition("]")[0])

    assert needed == ["aiohttp", "msgspec", "prometheus-client", "pyzmq", "sglang-warming"]

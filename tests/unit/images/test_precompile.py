import py_compile
import subprocess
import sys
from pathlib import Path

from images.engine.cpu import precompile


def compiled(folder: Path, text: str) -> Path:
    source = folder / "module.py"
    source.write_text(text)
    mode = py_compile.PycInvalidationMode.TIMESTAMP
    path = py_compile.compile(str(source), doraise=True, invalidation_mode=mode)
    assert path is not None
    return Path(path)


def printed_by_import(folder: Path) -> str:
    command = [sys.executable, "-B", "-c", "import module"]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=folder
    ).stdout.strip()


def test_marked_bytecode_is_used_without_a_look_at_its_source(tmp_path: Path) -> None:
    precompile.mark_unchecked(compiled(tmp_path, "print('as compiled')\n"))
    (tmp_path / "module.py").write_text("print('as written later')\n")

    assert printed_by_import(tmp_path) == "as compiled"


def test_marking_twice_changes_nothing(tmp_path: Path) -> None:
    path = compiled(tmp_path, "print('once')\n")
    precompile.mark_unchecked(path)
    once = path.read_bytes()

    precompile.mark_unchecked(path)

    assert path.read_bytes() == once

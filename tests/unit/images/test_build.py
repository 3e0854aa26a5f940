import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_an_unknown_part_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    result = subprocess.run(
        [ROOT / "images/build.sh", "operater"],
        env={**os.environ, "SGLANG_OPERATOR_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 1
    assert (
        "no such part: operater (operator agent router engine model tiny engine-env)"
        in result.stderr
    )

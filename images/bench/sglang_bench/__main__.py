"""`python -m sglang_bench` is the command `sglang-bench`."""

import sys

from sglang_bench.cli import main

sys.exit(main())

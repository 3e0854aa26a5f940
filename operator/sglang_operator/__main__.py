"""`python -m sglang_operator` is the command `sglang-operator`."""

import sys

from sglang_operator.cli import main

sys.exit(main())

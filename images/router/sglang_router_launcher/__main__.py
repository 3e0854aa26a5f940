"""`python -m sglang_router_launcher` is the command `sglang-router`."""

import sys

from sglang_router_launcher.cli import main

sys.exit(main())

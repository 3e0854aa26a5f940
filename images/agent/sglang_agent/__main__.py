"""`python -m sglang_agent` is the command `sglang-agent`."""

import sys

from sglang_agent.cli import main

sys.exit(main())

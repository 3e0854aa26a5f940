"""Lines on standard error that say how far it is: rewritten on a terminal, one at every quarter elsewhere."""

import sys
from typing import TextIO

QUARTERS = 4


class Progress:
    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._quarter = (0, "")

    def step(self, what: str, done: int, total: int) -> None:
        if self._out.isatty():
            end = "\n" if done == total else ""
            print(f"\r{what}: {done} of {total}", end=end, file=self._out, flush=True)
            return
        quarter = (QUARTERS * done // max(1, total), what)
        if quarter != self._quarter and quarter[0]:
            print(f"{what}: {done} of {total}", file=self._out, flush=True)
        self._quarter = quarter

"""Durations as users write them: `90s`, `30m`, `1h30m`."""

import re

DURATION_PATTERN = r"^([0-9]{1,5}[hms])+$"
"""Go's notation without fractions. Five digits keep CEL's `duration()` from overflowing."""

_SECONDS = {"h": 3600, "m": 60, "s": 1}


def duration_s(text: str) -> int:
    """Seconds in `text`. ValueError when it is not hours, minutes and seconds, each with a unit."""
    if not re.fullmatch(DURATION_PATTERN, text, re.ASCII):
        example = f"{text}m" if re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) else "30m"
        raise ValueError(f'a duration needs a unit (h, m or s); write "{example}"')
    return sum(
        int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([hms])", text)
    )

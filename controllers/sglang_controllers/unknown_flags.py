"""What a flag that SGLang does not have was probably meant to be."""

import difflib

from sglang_controllers.api.flags import FLAGS

NEARLY = 0.75
"""Likeness from which a flag is taken for a slip of another one. Flags have similar names."""

SENSES = (("enable-", "disable-"), ("disable-", "enable-"))


def meant(flag: str) -> str | None:
    """The flag that looks most like it and does not say the contrary; None: there is none."""
    close = difflib.get_close_matches(flag, FLAGS, n=3, cutoff=NEARLY)
    return next((other for other in close if not _contrary(flag, other)), None)


def contrary(flag: str) -> str | None:
    """A flag that switches off what `flag` switches on, or the other way round."""
    if flag.startswith("no-") and flag.removeprefix("no-") in FLAGS:
        return flag.removeprefix("no-")
    for sense, other in SENSES:
        if flag.startswith(sense) and other + flag.removeprefix(sense) in FLAGS:
            return other + flag.removeprefix(sense)
    return None


def _contrary(flag: str, other: str) -> bool:
    return any(flag.startswith(one) and other.startswith(two) for one, two in SENSES)

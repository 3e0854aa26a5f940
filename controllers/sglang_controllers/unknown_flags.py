"""What a flag that SGLang does not have was probably meant to be."""

import difflib

from sglang_controllers.api.flags import FLAGS

SENSES = (("enable-", "disable-"), ("disable-", "enable-"))


def meant(flag: str) -> str | None:
    """The flag that looks most like it and does not say the contrary; None: there is none."""
    close = difflib.get_close_matches(flag, FLAGS, n=3)
    return next((other for other in close if not _contrary(flag, other)), None)


def contrary(flag: str) -> str | None:
    """A flag that switches off what `flag` switches on, or the other way round."""
    for sense, other in SENSES:
        if flag.startswith(sense) and other + flag.removeprefix(sense) in FLAGS:
            return other + flag.removeprefix(sense)
    return None


def _contrary(flag: str, other: str) -> bool:
    return any(flag.startswith(one) and other.startswith(two) for one, two in SENSES)

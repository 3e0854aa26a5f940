"""Text of others that is shown in status: short, on one line, and without secrets."""

import re

LIMIT = 400
"""Characters of foreign text in one message; conditions as a whole may have 32,768."""

SECRETS = re.compile(
    r"""(?ix)
    (?P<kept>
        \b (?: api[-_]?key | token | password | passwd | secret ) ["']? \s* [=:] \s* ["']?
      | --[a-z-]* (?: key | token | password | secret ) \s+
      | \b authorization ["']? \s* : \s* ["']? (?: bearer | basic ) \s+
      | \b bearer \s+
    )
    [^\s"',;]{4,}
    | \b (?: hf_[a-z0-9]{8,} | sk-[a-z0-9_-]{8,} | gh[pousr]_[a-z0-9]{16,} | AKIA[0-9A-Z]{12,} )
    | (?P<scheme> \b[a-z][a-z0-9+.-]*:// ) [^/\s:@]+ : [^/\s@]+ @
    """
)


def redacted(text: str) -> str:
    """Replace what looks like a credential by ***."""

    def stars(match: re.Match[str]) -> str:
        if match["scheme"]:
            return match["scheme"] + "***@"
        return (match["kept"] or "") + "***"

    return SECRETS.sub(stars, text)


def excerpt(text: str, limit: int = LIMIT) -> str:
    """One line of at most `limit` characters, cut in the middle, redacted."""
    line = redacted(" ".join(text.split())).rstrip(".")
    if len(line) <= limit:
        return line
    half = (limit - 5) // 2
    return f"{line[:half]} ... {line[-half:]}"

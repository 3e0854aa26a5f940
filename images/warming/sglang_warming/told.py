"""What a log says of the progress: each thing once."""

from sglang_warming.loop import Failure, Progress, State


class Told:
    """What was told already, so that only news are."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._state: State | None = None
        self._failures = 0

    def news(self, progress: Progress) -> list[str]:
        """Lines, without any text of a prompt."""
        if progress is not self._progress:
            self._progress, self._state, self._failures = progress, None, 0
        failures = progress.failures[self._failures :]
        self._failures += len(failures)
        lines = [_line(failure) for failure in failures]
        if progress.state != self._state:
            self._state = progress.state
            lines.append(
                f"{progress.state}: {progress.warmed} of {progress.total} prompts, "
                f"{progress.failed} failed"
            )
        return lines


def _line(failure: Failure) -> str:
    source = failure.source
    where = source.name if source.kind == "file" else f"{source.kind} {source.name}, {source.key}"
    entry = "" if failure.index is None else f"entry {failure.index}: "
    return f"{where}: {entry}{failure.message}"

"""What goes wrong while the sandbox is installed, started or stopped."""

from pathlib import Path


class StepFailed(Exception):
    """A step of the sandbox failed: `str()` of it is a complete message for the person at the terminal.

    `log` is the file to read for the cause, if there is one; the message names it already.
    """

    def __init__(self, message: str, log: Path | None = None) -> None:
        super().__init__(message)
        self.log = log


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of `log`, or an empty string if it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 200 * lines))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])

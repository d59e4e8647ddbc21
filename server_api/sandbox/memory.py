"""What is chosen at random once and used by every later start: IDs, passwords, keys and tokens."""

import secrets
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from server_api.sandbox.layout import read_json, write_json


class Memory:
    """Names and values kept in the file `path`, which only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: dict[str, str] = {name: str(value) for name, value in read_json(path).items()}

    def recall(self, name: str, make: Callable[[], str]) -> str:
        """Return the value of `name`; the first time that is what `make` returns."""
        if name not in self._values:
            self._values[name] = make()
            write_json(self._path, self._values)
        return self._values[name]

    def id(self, name: str) -> str:
        """Return a random UUID that begins with a letter, as the region service makes its own."""
        return self.recall(name, _letter_first)

    def secret(self, name: str) -> str:
        """Return a random text that is fit for a password and for a header."""
        return self.recall(name, lambda: secrets.token_urlsafe(24))


def _letter_first() -> str:
    while True:
        text = str(uuid4())
        if text[0].isalpha():
            return text

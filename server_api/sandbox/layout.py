"""Where everything of one sandbox lies."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Layout:
    """The paths of one sandbox below `directory`, which is absolute.

    `cache` holds what is made once and then used by every sandbox of this machine's user: OpenStack's virtual
    environment and its prepared databases.
    """

    directory: Path
    cache: Path

    @classmethod
    def at(cls, directory: Path, cache: Path | None = None) -> "Layout":
        """Return the layout of `directory`, with the cache inside of it unless told another."""
        directory = directory.absolute()
        return cls(directory, cache.absolute() if cache else directory / "cache")

    @property
    def openstack(self) -> Path:
        """OpenStack's databases, configuration, logs and pid files."""
        return self.directory / "openstack"

    @property
    def kubernetes_database(self) -> Path:
        """Everything that the embedded Kubernetes API stores."""
        return self.directory / "kubernetes.sqlite"

    @property
    def kubeconfig(self) -> Path:
        """The client configuration of the embedded Kubernetes API."""
        return self.directory / "kubeconfig"

    @property
    def tokens(self) -> Path:
        """The tokens as the API reads them: digests and rights."""
        return self.directory / "tokens.yaml"

    @property
    def identity(self) -> Path:
        """What the stand-in identity service knows, and how it is to misbehave."""
        return self.directory / "identity.yaml"

    @property
    def certificates(self) -> Path:
        """Certificate and key of a service, and the authority's certificate."""
        return self.directory / "certificates"

    @property
    def memory(self) -> Path:
        """What the seed chose at random once: IDs, passwords, tokens."""
        return self.directory / "seed.json"

    @property
    def choices(self) -> Path:
        """What the last start decided: ports, and which Kubernetes it used."""
        return self.directory / "sandbox.json"

    @property
    def environment(self) -> Path:
        """The shell-sourceable file that says where everything is."""
        return self.directory / "env"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops something here."""
        return self.directory / "lock"


def write_private(path: Path, text: str) -> None:
    """Replace `path` at once and as a whole by a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in `path`, an empty one if there is no such file."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return dict(content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace `path` by `content`, readable by its owner only."""
    write_private(path, json.dumps(content, indent=1, sort_keys=True) + "\n")

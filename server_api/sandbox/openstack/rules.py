"""What the services are told to delay, refuse or lose. See docs/sandbox-rules.md."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_rules(path: Path, rules: Sequence[Mapping[str, Any]]) -> None:
    """Replace the rules as a whole: a service sees either all the old ones or all the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(list(rules), file, indent=1)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise

"""A YAML file of who may do what: read with care, and again whenever it changes.

Whoever can write the file can be anybody, so one that others than its owner may write is refused. One that everybody
may read is warned of and used: it holds digests and names, and a mounted Kubernetes Secret looks like that.

A new version that cannot be used changes nothing: the one before stays in force, which is said in the log and in the
metric ``server_api_access_file_broken``. To have no caller at all because of a slip of the pen would be worse.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import structlog
import yaml
from prometheus_client import Gauge

Content = TypeVar("Content")

BROKEN = Gauge(
    "server_api_access_file_broken",
    "1 when the newest version of a file of callers or policy cannot be used, and an older one is in force.",
    ["file"],
    multiprocess_mode="livemax",
)

_Signature = tuple[int, ...] | None

_log = structlog.get_logger(__name__)


class UnusableFile(ValueError):
    """The file cannot be used; the text says where and why, and repeats nothing of it but names."""


class _Refused(Exception):
    """The file is not even read."""


class WatchedFile(Generic[Content]):
    """What ``parse`` makes of the file's YAML, always of its newest usable version. Thread-safe.

    ``parse`` raises ValueError, whose text quotes nothing that is secret. ``name`` stands for the file in the metric.
    """

    def __init__(self, path: Path, name: str, parse: Callable[[object], Content]) -> None:
        """Read the file. Raises UnusableFile."""
        self._path = path
        self._name = name
        self._parse = parse
        self._reloading = Lock()
        self._seen = _signature(path)
        self._content = self._load()
        BROKEN.labels(name).set(0)

    @property
    def content(self) -> Content:
        """The newest usable version. Looks at the file's state, which is cheap, and reads it when that has changed."""
        if _signature(self._path) != self._seen and self._reloading.acquire(blocking=False):
            # Others go on with the version before, for the moment that the reading takes.
            try:
                self._reload()
            finally:
                self._reloading.release()
        return self._content

    def _reload(self) -> None:
        self._seen = _signature(self._path)
        try:
            self._content = self._load()
        except UnusableFile as error:
            BROKEN.labels(self._name).set(1)
            _log.error("the new version of a file is not usable; the one before stays in force", detail=str(error))
        else:
            BROKEN.labels(self._name).set(0)
            _log.info("a file was read anew", file=str(self._path))

    def _load(self) -> Content:
        try:
            document = yaml.load(self._read(), Loader=_Loader)  # noqa: S506  it is a SafeLoader  # nosec B506
        except _Refused as refusal:
            raise UnusableFile(f"{self._path}: {refusal}") from None
        except (OSError, ValueError, yaml.YAMLError) as error:
            # Their own texts quote the file.
            raise UnusableFile(f"{self._path}: {_reason(error)}") from None
        try:
            return self._parse(document)
        except ValueError as error:
            raise UnusableFile(f"{self._path}: {error}") from None

    def _read(self) -> str:
        # Not blocking: nobody may ever write into what turns out to be a pipe.
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise _Refused("not a regular file")
            if mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise _Refused("others than its owner may write it: chmod go-w")
            if mode & stat.S_IROTH:
                _log.warning("everybody on this machine may read a file of callers", file=str(self._path))
            return file.read()


def _signature(path: Path) -> _Signature:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = "" if mark is None else f" in line {mark.line + 1}"
    return f"{type(error).__name__}{where}"


class _Loader(yaml.SafeLoader):
    """YAML of plain values. A key given twice is an error: the second would silently win over the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping. Raises yaml.YAMLError for a key that is repeated."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        texts = [key for key in keys if isinstance(key, str)]
        if len(set(texts)) != len(texts):
            raise yaml.constructor.ConstructorError(None, None, "a key is given twice", node.start_mark)
        return super().construct_mapping(node, deep)

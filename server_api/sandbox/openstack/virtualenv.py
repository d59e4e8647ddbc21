"""The virtual environment of the services: made once for each set of versions, whole or not at all."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from server_api.sandbox.errors import StepFailed, tail
from server_api.sandbox.processes import PROGRESS_INTERVAL

CONSTRAINTS = Path(__file__).parents[3] / "constraints" / "openstack.txt"
PACKAGES = ("keystone", "glance", "openstack-placement", "neutron", "nova", "waitress")

Report = Callable[[str], None]


def cache_key(constraints: Path = CONSTRAINTS) -> str:
    """Return a name for what `constraints` install under this Python, different if either is."""
    python = f"{sys.implementation.cache_tag}-{sys.platform}\n"
    return hashlib.sha256(python.encode() + constraints.read_bytes()).hexdigest()[:12]


class VirtualEnvironment:
    """The environment below `folder`: `path` is its root, `python` its interpreter."""

    def __init__(self, folder: Path, report: Report, constraints: Path = CONSTRAINTS) -> None:
        self.path = folder / "venv"
        self.python = self.path / "bin" / "python"
        self.log = folder / "install.log"
        self._folder = folder
        self._marker = folder / "venv.complete"
        self._report = report
        self._constraints = constraints

    def complete(self) -> bool:
        """Tell whether it was installed to the end, and here: its scripts hold absolute paths."""
        try:
            return self._marker.read_text() == str(self.path) and self.python.exists()
        except OSError:
            return False

    def install(self) -> None:
        """Make it unless it is there; safe in several processes at once. Raises StepFailed."""
        if self.complete():
            return
        with locked(self._folder / "install.lock", self._report, "another process is installing OpenStack"):
            if self.complete():
                return
            self._marker.unlink(missing_ok=True)
            shutil.rmtree(self.path, ignore_errors=True)
            self.log.unlink(missing_ok=True)
            began = time.monotonic()
            self._report(f"installing OpenStack into {self.path}, once; log: {self.log}")
            self._create()
            self._marker.write_text(str(self.path))
            self._report(f"OpenStack installed in {time.monotonic() - began:.0f} s")

    def _create(self) -> None:
        self._run([sys.executable, "-m", "venv", self.path], "creating the virtual environment")
        pip: list[str | Path] = [
            self.python,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "-c",
            self._constraints,
        ]
        doing = "installing the packages of OpenStack"
        try:
            # uv takes a tenth of pip's time, above all by unpacking in parallel and by not compiling what
            # nobody runs
            self._run([*pip, "uv"], "installing uv")
            uv: list[str | Path] = [
                self.path / "bin" / "uv",
                "pip",
                "install",
                "--cache-dir",
                self._folder.parent / "uv",
            ]
            self._run([*uv, "--python", self.python, "-c", self._constraints, *PACKAGES], doing)
        except StepFailed:
            # it reads neither pip's configuration nor its variables, so an index given by these is not known
            # to it
            self._report("uv could not install OpenStack: trying pip")
            self._run([*pip, *PACKAGES], doing)

    def _run(self, argv: Sequence[str | Path], doing: str) -> None:
        # constraints of our own environment (tox sets them for pip) must not meet those of this one
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTHON") and name not in ("PIP_CONSTRAINT", "UV_CONSTRAINT")
        }
        run(argv, doing, self.log, self._report, env)


def run(
    argv: Sequence[str | Path],
    doing: str,
    log: Path,
    report: Report,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a command to its end, its output appended to `log`; say that it is still `doing` that now and then.

    Raises StepFailed, carrying the end of the log, if it fails.
    """
    began = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"+ {' '.join(map(str, argv))}\n".encode())
        output.flush()
        with subprocess.Popen(
            [os.fspath(word) for word in argv],
            env=dict(env) if env is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as child:
            try:
                while True:
                    try:
                        status = child.wait(PROGRESS_INTERVAL)
                        break
                    except subprocess.TimeoutExpired:
                        report(f"still {doing} ({time.monotonic() - began:.0f} s)")
            except BaseException:
                child.kill()
                raise
    if status:
        raise StepFailed(f"{doing} failed; read {log}\n{tail(log)}", log)


@contextmanager
def locked(path: Path, report: Report, why: str) -> Iterator[None]:
    """Hold the lock file `path`, which the kernel frees at exit; report `why` while another process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        told = -PROGRESS_INTERVAL
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - told >= PROGRESS_INTERVAL:
                    told = time.monotonic()
                    report(f"{why}: waiting for it")
                time.sleep(0.2)
        yield

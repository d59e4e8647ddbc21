import os
import signal
from pathlib import Path
from typing import cast

import pytest

from server_api.sandbox import foreground
from server_api.sandbox.region import Region


class Runs:
    """A sandbox of which `looks` says, look by look, what is alive; after the last look we are interrupted."""

    def __init__(self, *looks: set[str]) -> None:
        self._looks = list(looks)

    def running(self) -> set[str]:
        if not self._looks:
            raise foreground.Interrupted
        return self._looks.pop(0)

    def log_of(self, name: str) -> Path:
        return Path(f"/log/{name}.log")


def test_a_process_that_dies_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreground, "LOOK_INTERVAL", 0)
    region = Runs({"api", "controller"}, {"api", "controller"}, {"api"}, {"api"})
    lines: list[str] = []
    with pytest.raises(foreground.Interrupted):
        foreground.stay(cast(Region, region), lines.append)
    assert lines == ["controller has died; read /log/controller.log"]


@pytest.mark.parametrize("number", foreground.SIGNALS)
def test_a_signal_interrupts_once_and_a_second_does_not_cut_the_stopping_short(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stopped = False
    with foreground.interruptible():
        with pytest.raises(foreground.Interrupted):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        stopped = True
    assert stopped
    assert signal.getsignal(number) is before

"""How many servers are in which state, counted anew at each poll of the monitor (contract 7.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True)
class StateLabels:
    """Where one server counts. ``state`` is its phase in lower case; a name is empty when it is not known."""

    state: str
    region_id: str
    region_name: str
    flavor_id: str
    flavor_name: str


class StateCensus(Collector):
    """The gauge ``unikorn_region_server_state``.

    Each count replaces the whole one before: a label set that no server has any more is gone, and a scrape
    never sees half of a count.
    """

    def __init__(self) -> None:
        self._counts: Counter[StateLabels] = Counter()

    def replace(self, servers: Iterable[StateLabels]) -> None:
        """Let the gauge show these servers, and no others."""
        self._counts = Counter(servers)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauge, as prometheus-client wants it."""
        family = GaugeMetricFamily(
            "unikorn_region_server_state",
            "Servers by state, region and flavor.",
            labels=["state", "region_id", "region_name", "flavor_id", "flavor_name"],
        )
        for labels, count in self._counts.items():
            family.add_metric(
                [labels.state, labels.region_id, labels.region_name, labels.flavor_id, labels.flavor_name],
                count,
            )
        yield family

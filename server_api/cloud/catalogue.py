"""What a region exports, kept for a short time (contract 6.7 and 6.10)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cachetools import LRUCache, TTLCache

from server_api import deadline
from server_api.cloud.errors import translated
from server_api.cloud.flavors import exported_flavors
from server_api.cloud.glance import public_images
from server_api.cloud.images import exported_images
from server_api.cloud.nova import every_page
from server_api.cloud.sessions import CloudClients
from server_api.servers.cloud_model import Flavor, Image
from server_api.servers.ports import TimedOut
from server_api.servers.surroundings import Region

T = TypeVar("T")

REGIONS_KEPT = 64


class ExpiringLists(Generic[T]):
    """One list per region, loaded anew when it is older than ``seconds``.

    A region whose configuration changes is another key. One thread loads a region's list; the others wait for it,
    within their own deadlines. An expired list is never served: a failure to load it is the caller's answer.
    """

    def __init__(self, dependency: str, seconds: float, timer: Callable[[], float] = time.monotonic) -> None:
        self._dependency = dependency
        self._lists: TTLCache[Region, _Kept[T]] = TTLCache(maxsize=REGIONS_KEPT, ttl=seconds, timer=timer)
        self._loading: LRUCache[Region, _Loading[T]] = LRUCache(maxsize=REGIONS_KEPT)
        self._lock = threading.Lock()

    def get(self, region: Region, load: Callable[[], Sequence[T]], wait_seconds: float) -> Sequence[T]:
        """Return the region's list, calling ``load`` if need be. Raises TimedOut, and whatever ``load`` raises."""
        with self._lock:
            kept = self._lists.get(region)
            if kept is not None:
                return kept.items
            loading = self._loading.setdefault(region, _Loading())
        with translated(self._dependency):
            wait_seconds = deadline.remaining(wait_seconds)
        if not loading.lock.acquire(timeout=wait_seconds):
            raise TimedOut(self._dependency, "waited too long for another thread's answer")
        try:
            return self._loaded(region, loading, load)
        finally:
            loading.lock.release()

    def add(self, region: Region, item: T, same: Callable[[T], bool]) -> None:
        """Put an item at the end of the region's list until that is loaded anew, unless one is the same.

        Does nothing when no list is kept: the next loading finds the item.
        """
        with self._lock:
            kept = self._lists.get(region)
            if kept is not None and not any(map(same, kept.items)):
                kept.items = [*kept.items, item]
            loading = self._loading.get(region)
            if loading is not None:
                loading.added.append((item, same))

    def _loaded(self, region: Region, loading: _Loading[T], load: Callable[[], Sequence[T]]) -> Sequence[T]:
        with self._lock:
            kept = self._lists.get(region)
            if kept is not None:
                return kept.items
            loading.added.clear()
        items = list(load())
        with self._lock:
            # The service may have made its list before it had these.
            items += [item for item, same in loading.added if not any(map(same, items))]
            self._lists[region] = _Kept(items)
        return items


@dataclass(slots=True)
class _Kept(Generic[T]):
    """A list as it is at present; replaced and never changed, since callers hold it."""

    items: Sequence[T]


@dataclass(slots=True)
class _Loading(Generic[T]):
    """Held by the thread that loads a region's list. ``added`` has what was added since it began."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    added: list[tuple[T, Callable[[T], bool]]] = field(default_factory=list)


class RegionCatalogue:
    """The port ``Catalogue`` of one region. ``clients`` logs in as the region's service account when called."""

    def __init__(
        self,
        region: Region,
        clients: Callable[[], CloudClients],
        flavors: ExpiringLists[Flavor],
        images: ExpiringLists[Image],
        wait_seconds: float,
    ) -> None:
        self._region = region
        self._clients = clients
        self._flavors = flavors
        self._images = images
        self._wait_seconds = wait_seconds

    def flavors(self) -> Sequence[Flavor]:
        """Return the exported flavors by name."""
        return self._flavors.get(self._region, self._load_flavors, self._wait_seconds)

    def images(self) -> Sequence[Image]:
        """Return the exported images of every owner, by creation time."""
        return self._images.get(self._region, self._load_images, self._wait_seconds)

    def add_image(self, image: Image) -> None:
        """Let an image be found at once, before the list of images is loaded anew."""
        self._images.add(self._region, image, lambda known: known.id == image.id)

    def _load_flavors(self) -> Sequence[Flavor]:
        clients = self._clients()
        with translated("nova"):
            return exported_flavors(every_page(clients.nova.flavors.list), self._region)

    def _load_images(self) -> Sequence[Image]:
        return exported_images(public_images(self._clients()), self._region.image_signing_key)

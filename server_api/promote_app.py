"""The composition root of ``server-api promote``: adapters, progress and the report around the promoter."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from server_api.cloud import OpenStackCloud
from server_api.promotion_report import Report
from server_api.servers.ports import PortError
from server_api.servers.promoter import Promoter
from server_api.settings import Settings
from server_api.store.client import KubernetesClient
from server_api.store.credentials import KubernetesCredentials
from server_api.store.directory import KubernetesDirectory
from server_api.store.promotions import PromotableServerStore

PROGRESS_SECONDS = 1.0

Say = Callable[[str], None]


class UnknownServers(Exception):
    """Servers were named that are not stored."""


def promote(settings: Settings, server_ids: Sequence[str], *, plan: bool, say: Say) -> Report:
    """Promote the named servers, or all of them when none is named, and return what became of each.

    ``say`` gets a line about the progress now and then. A run that Kubernetes or Ctrl-C ended early reports what was
    done until then. Raises UnknownServers before anything is written, PortError when not even that is known.
    """
    promoter = build_promoter(settings, plan=plan)
    stored = promoter.survey()
    unknown = sorted(set(server_ids).difference(stored))
    if unknown:
        raise UnknownServers(f"there is no server {', '.join(unknown)}")
    return run(promoter, list(dict.fromkeys(server_ids)) or stored, plan=plan, say=say)


def build_promoter(settings: Settings, *, plan: bool) -> Promoter:
    """Return a promoter over real adapters. Nothing is connected before it is used."""
    client, namespace = KubernetesClient.from_settings(settings), settings.namespace
    return Promoter(
        PromotableServerStore(client, namespace),
        KubernetesDirectory(client, namespace),
        OpenStackCloud(KubernetesCredentials(client, namespace), settings),
        write=not plan,
    )


def run(promoter: Promoter, server_ids: Sequence[str], *, plan: bool, say: Say) -> Report:
    """Promote servers of the survey one after the other, as far as it goes."""
    report = Report(plan=plan, total=len(server_ids))
    said_at = time.monotonic()
    try:
        for server_id in server_ids:
            report.add(promoter.promote(server_id))
            if time.monotonic() - said_at > PROGRESS_SECONDS:
                said_at = time.monotonic()
                say(report.progress())
    except PortError as error:
        report.stop(str(error))
    except KeyboardInterrupt:
        report.stop("interrupted")
    say(report.progress())
    return report

"""The OpenStack adapter: implements ``servers.ports.Cloud`` over Nova, Glance and Neutron (contract section 6).

Importing it loads all of the OpenStack clients, about 0.8 s and 40 MB, so that no first request has to wait for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from server_api.cloud.baremetal import IronicNodes
from server_api.cloud.catalogue import ExpiringLists, RegionCatalogue
from server_api.cloud.glance import GlanceTenancyImages
from server_api.cloud.neutron import NeutronNetworking, exported_external_networks
from server_api.cloud.nova import NovaCompute
from server_api.cloud.placement import PlacementHosts
from server_api.cloud.sessions import CallObserver, CloudClients, CloudCredential, SessionPool, unobserved
from server_api.servers.cloud_model import Flavor, Image
from server_api.servers.ports import Credentials, Refused, Tenancy
from server_api.servers.surroundings import Region
from server_api.settings import Settings

PROVIDER = "openstack"


class OpenStackCloud:
    """The port ``Cloud``. Safe for use by many threads; opens no connection and starts no thread by itself.

    Make one for each process, after the fork: it owns the connections and the caches. ``observe_call`` is told of every
    request that is sent.
    """

    def __init__(self, credentials: Credentials, settings: Settings, observe_call: CallObserver = unobserved) -> None:
        self._credentials = credentials
        self._read_timeout = settings.read_timeout
        self._sessions = SessionPool(settings, observe_call)
        self._flavors: ExpiringLists[Flavor] = ExpiringLists("nova", settings.flavor_cache_seconds)
        self._images: ExpiringLists[Image] = ExpiringLists("glance", settings.image_cache_seconds)

    def catalogue(self, region: Region) -> RegionCatalogue:
        """Return what the region exports. Raises Refused for a region that is not OpenStack's."""
        _require_openstack(region)
        return RegionCatalogue(
            region, lambda: self._region_clients(region), self._flavors, self._images, self._read_timeout
        )

    def tenancy(self, region: Region, identity_id: str) -> Tenancy:
        """Return the identity's project, with the credentials as they are now.

        Ask anew for every request or pass: the tenancy does not notice a changed secret. Raises Missing when the
        identity has no credentials or project yet, Refused for a region that is not OpenStack's.
        """
        _require_openstack(region)
        account = self._credentials.identity_credentials(identity_id)
        clients = self._sessions.clients(
            CloudCredential(region.endpoint, account.user_id, account.password, account.project_id)
        )

        def external_networks() -> Sequence[str]:
            return exported_external_networks(self._region_clients(region), region)

        def region_clients() -> CloudClients:
            return self._region_clients(region, account.project_id)

        return Tenancy(
            compute=NovaCompute(clients, region_clients),
            networking=NeutronNetworking(clients, external_networks),
            images=GlanceTenancyImages(region_clients),
            placement=PlacementHosts(region_clients),
            baremetal=IronicNodes(region_clients),
            ssh_key_name=account.ssh_key_name,
        )

    def _region_clients(self, region: Region, project_id: str | None = None) -> CloudClients:
        """Log in as the region's service account, on a tenant's project if one is given, else on its own."""
        account = self._credentials.service_account(region)
        return self._sessions.clients(
            CloudCredential(region.endpoint, account.user_id, account.password, project_id or account.project_id)
        )


def _require_openstack(region: Region) -> None:
    if region.provider != PROVIDER:
        raise Refused(PROVIDER, f"region {region.id} has a provider that is not supported")

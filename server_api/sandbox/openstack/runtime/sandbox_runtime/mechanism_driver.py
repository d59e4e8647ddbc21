"""ML2 mechanism driver that binds every port on every host, with no agent.

None of Neutron's own would do: `logger` never binds, `test` binds hosts of certain names only, and
`fake_agent` wants a live agent.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class SandboxMechanismDriver(api.MechanismDriver):
    def initialize(self):
        pass

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        segment = context.segments_to_bind[0]
        context.set_binding(
            segment[api.ID],
            portbindings.VIF_TYPE_OVS,
            {portbindings.CAP_PORT_FILTER: True, portbindings.VIF_DETAILS_CONNECTIVITY: self.connectivity},
            status=constants.PORT_STATUS_ACTIVE,
        )

"""Nova's fake hypervisor, made scriptable.

What it adds to nova.virt.fake.MediumFakeDriver:
- stable UUIDs of nodes, so that a restart on the same database finds its compute nodes again;
- after a restart the instances of the host are still "on the hypervisor";
- a snapshot uploads bytes, so that the image becomes active;
- driver rules (those with a member `op`) from the rules file, looked up before each operation:

    {"op": "spawn",          # spawn rebuild snapshot reboot power_off power_on destroy console; all are globs
     "name": "web-*",        # the server's name
     "image": "<id>",        # the server's image
     "host": "fake1",        # the compute host
     "delay": 3.0,           # seconds
     "error": "text",        # fail with this message
     "abort": true,          # of spawn only: fail without a try on another host
     "times": 1, "id": "x"}  # as of HTTP rules, see faults.py

All matching rules apply, up to the first with an error.
"""

import io
import time
import uuid

from nova import context as nova_context
from nova import exception, objects
from nova.compute import power_state, task_states, vm_states
from nova.image import glance
from nova.virt import fake

from sandbox_runtime.rule_book import rule_book

SNAPSHOT_SECONDS = 1.0

REBUILD_STATES = (
    task_states.REBUILDING,
    task_states.REBUILD_BLOCK_DEVICE_MAPPING,
    task_states.REBUILD_SPAWNING,
)


class SandboxDriver(fake.MediumFakeDriver):
    # roomy enough that no test meets the end of it unasked
    vcpus = 1024
    memory_mb = 4 * 1024 * 1024
    local_gb = 64 * 1024

    def init_host(self, host):
        self._host = host
        self._set_nodes([host])
        for instance in objects.InstanceList.get_by_host(nova_context.get_admin_context(), host):
            if instance.vm_state in (vm_states.BUILDING, vm_states.DELETED):
                continue
            stopped = instance.vm_state == vm_states.STOPPED
            self.instances[instance.uuid] = fake.FakeInstance(
                instance.name, power_state.SHUTDOWN if stopped else power_state.RUNNING, instance.uuid
            )

    def get_available_resource(self, nodename):
        resource = super().get_available_resource(nodename)
        if resource:
            resource["uuid"] = _node_uuid(nodename)
        return resource

    def get_nodenames_by_uuid(self, refresh=False):
        return {_node_uuid(name): name for name in self.get_available_nodes()}

    def spawn(self, context, instance, *args, **kwargs):
        self._apply_rules("rebuild" if instance.task_state in REBUILD_STATES else "spawn", instance)
        return super().spawn(context, instance, *args, **kwargs)

    def snapshot(self, context, instance, image_id, update_task_state):
        if instance.uuid not in self.instances:
            raise exception.InstanceNotRunning(instance_id=instance.uuid)
        update_task_state(task_state=task_states.IMAGE_PENDING_UPLOAD)
        # A real hypervisor copies a disk first. Without that time an upload meets whoever changes the new image.
        time.sleep(SNAPSHOT_SECONDS)
        self._apply_rules("snapshot", instance)
        update_task_state(task_state=task_states.IMAGE_UPLOADING, expected_state=task_states.IMAGE_PENDING_UPLOAD)
        api = glance.API()
        image = api.get(context, image_id)
        properties = {"kernel_id": "", "ramdisk_id": ""}
        if "image_type" in image.get("properties", {}):
            properties["image_type"] = image["properties"]["image_type"]
        metadata = {
            "name": image["name"],
            "disk_format": "raw",
            "container_format": "bare",
            "properties": properties,
        }
        content = io.BytesIO(f"snapshot of {instance.uuid}\n".encode())
        api.update(context, image_id, metadata, content, purge_props=False)

    def reboot(self, context, instance, *args, **kwargs):
        self._apply_rules("reboot", instance)
        return super().reboot(context, instance, *args, **kwargs)

    def power_off(self, instance, *args, **kwargs):
        self._apply_rules("power_off", instance)
        if instance.uuid not in self.instances:
            # Nothing left to stop, which libvirt takes as done. FakeDriver raises InstanceNotFound; a rebuild
            # after a failed rebuild takes that for "deleted meanwhile", and leaves the server in `rebuilding`
            # for ever.
            return None
        return super().power_off(instance, *args, **kwargs)

    def power_on(self, context, instance, *args, **kwargs):
        self._apply_rules("power_on", instance)
        return super().power_on(context, instance, *args, **kwargs)

    def destroy(self, context, instance, *args, **kwargs):
        self._apply_rules("destroy", instance)
        return super().destroy(context, instance, *args, **kwargs)

    def get_console_output(self, context, instance):
        self._apply_rules("console", instance)
        return f"FAKE CONSOLE OUTPUT of {instance.display_name}\nANOTHER\nLAST LINE"

    def _apply_rules(self, operation, instance):
        matching = rule_book.matching(
            "op",
            op=operation,
            name=instance.display_name,
            image=str(instance.image_ref or ""),
            host=self._host,
        )
        for rule in matching:
            time.sleep(float(rule.get("delay", 0)))
            if not rule.get("error"):
                continue
            if rule.get("abort"):
                raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=rule["error"])
            raise exception.NovaException(rule["error"])


def _node_uuid(name):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, "sandbox-" + name))

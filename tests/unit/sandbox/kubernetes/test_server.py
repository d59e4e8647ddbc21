"""The server on a port: with the official client, many clients at once, and nothing left behind."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

from server_api.sandbox.kubernetes import EmbeddedKubernetes

from .conftest import Api

GROUP = ("example.dev", "v1", "default", "widgets")


@pytest.fixture
def official(cluster, tmp_path):
    """The official client, configured by the kubeconfig the server writes."""
    cluster.kubeconfig(tmp_path / "config")
    with config.new_client_from_config(str(tmp_path / "config")) as api_client:
        yield api_client


def widget(name):
    return {
        "apiVersion": "example.dev/v1",
        "kind": "Widget",
        "metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"image": "i"},
    }


def test_official_client_reads_what_it_writes(official):
    objects = client.CustomObjectsApi(official)
    created = objects.create_namespaced_custom_object(*GROUP, widget("one"))
    assert objects.get_namespaced_custom_object(*GROUP, "one") == created
    created["status"] = {"phase": "Up"}
    assert objects.replace_namespaced_custom_object_status(*GROUP, "one", created)["status"] == {"phase": "Up"}
    with pytest.raises(ApiException) as conflict:
        objects.replace_namespaced_custom_object(*GROUP, "one", created)
    assert conflict.value.status == 409
    assert objects.patch_namespaced_custom_object(*GROUP, "one", {"spec": {"size": 3}})["spec"]["size"] == 3
    assert objects.delete_namespaced_custom_object(*GROUP, "one")["status"] == "Success"
    assert objects.list_namespaced_custom_object(*GROUP)["items"] == []


def test_official_typed_client_handles_built_in_kinds(official):
    core, leases = client.CoreV1Api(official), client.CoordinationV1Api(official)
    metadata = client.V1ObjectMeta(name="s")
    core.create_namespaced_secret("default", client.V1Secret(metadata=metadata, string_data={"k": "v"}))
    assert core.read_namespaced_secret("s", "default").data == {"k": "dg=="}
    spec = client.V1LeaseSpec(holder_identity="a", lease_duration_seconds=15)
    lease = leases.create_namespaced_lease("default", client.V1Lease(metadata=metadata, spec=spec))
    leases.replace_namespaced_lease("s", "default", lease)
    lease.spec.holder_identity = "b"
    leases.replace_namespaced_lease("s", "default", leases.read_namespaced_lease("s", "default"))
    changed = leases.read_namespaced_lease("s", "default")
    changed.spec.holder_identity = "c"
    leases.replace_namespaced_lease("s", "default", changed)
    with pytest.raises(ApiException) as conflict:
        leases.replace_namespaced_lease("s", "default", lease)
    assert conflict.value.status == 409


def test_b40_official_watch_meets_410_and_goes_on_from_a_fresh_list(cluster, official):
    objects = client.CustomObjectsApi(official)
    old = objects.list_namespaced_custom_object(*GROUP)["metadata"]["resourceVersion"]
    objects.create_namespaced_custom_object(*GROUP, widget("one"))
    cluster.compact()

    def events(since):
        stream = watch.Watch().stream(
            objects.list_namespaced_custom_object, *GROUP, resource_version=since, timeout_seconds=1
        )
        return [event["object"]["metadata"]["name"] for event in stream]

    with pytest.raises(ApiException) as gone:
        events(old)
    assert gone.value.status == 410
    fresh = objects.list_namespaced_custom_object(*GROUP)["metadata"]["resourceVersion"]
    objects.create_namespaced_custom_object(*GROUP, widget("two"))
    assert events(fresh) == ["two"]


def test_abandoned_watches_give_their_threads_back(cluster):
    url = f"{cluster.url}/apis/example.dev/v1/widgets?watch=true&resourceVersion=0"
    for _ in range(3):
        opened = [urllib.request.urlopen(url, timeout=10) for _ in range(40)]
        for response in opened:
            response.close()
    with urllib.request.urlopen(f"{cluster.url}/readyz", timeout=10) as answer:
        assert answer.read() == b"ok"


def test_concurrent_updates_lose_nothing(cluster, official):
    objects = client.CustomObjectsApi(official)
    objects.create_namespaced_custom_object(*GROUP, {**widget("one"), "spec": {"image": "i", "size": 20}})

    def count():
        done = 0
        while done < 10:
            obj = objects.get_namespaced_custom_object(*GROUP, "one")
            obj["spec"]["size"] += 1
            try:
                objects.replace_namespaced_custom_object(*GROUP, "one", obj)
                done += 1
            except ApiException as error:
                if error.status != 409:
                    raise

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert objects.get_namespaced_custom_object(*GROUP, "one")["spec"]["size"] == 60


def test_closing_ends_every_watch_and_every_thread():
    before = set(threading.enumerate())
    running = EmbeddedKubernetes()
    database = Path(running._temporary.name)
    response = urllib.request.urlopen(f"{running.url}/api/v1/namespaces?watch=true", timeout=10)
    assert b"ADDED" in response.readline()
    running.close()
    running.close()
    assert response.read().count(b"ADDED") == 1
    assert set(threading.enumerate()) == before
    assert not database.exists()


def test_reset_is_seen_by_running_watches(cluster):
    api = Api(cluster.app)
    api.create("one", finalizers=["held.dev/f"])
    url = f"{cluster.url}{api.widgets}?watch=true&timeoutSeconds=20"
    with urllib.request.urlopen(url, timeout=10) as response:
        assert b"ADDED" in response.readline()
        cluster.reset()
        assert b"DELETED" in response.readline()


def test_kubeconfig_is_for_its_owner_only_and_carries_the_token(tmp_path):
    with EmbeddedKubernetes(token="secret-token") as running:
        path = tmp_path / "config"
        running.kubeconfig(path, namespace="unikorn")
        assert path.stat().st_mode & 0o777 == 0o600
        document = yaml.safe_load(path.read_text())
        assert document["contexts"][0]["context"]["namespace"] == "unikorn"
        with config.new_client_from_config(str(path)) as api_client:
            assert len(client.CoreV1Api(api_client).list_namespace().items) == 2
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{running.url}/api/v1/namespaces", timeout=10)


def test_database_of_another_version_is_told_in_one_line(tmp_path):
    database = tmp_path / "objects.db"
    with contextlib.closing(sqlite3.connect(database)) as other:
        other.execute("CREATE TABLE objects (name TEXT)")
    command = [sys.executable, "-m", "server_api.sandbox.kubernetes", "--port", "0", "--database", str(database)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "another version" in done.stderr


def test_process_serves_until_it_is_told_to_stop(tmp_path):
    command = [sys.executable, "-m", "server_api.sandbox.kubernetes", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--database", str(tmp_path / "objects.db")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "EMBEDDED_KUBERNETES_TOKEN": "from-environment"},
    )
    try:
        url = process.stdout.readline().split()[-1]
        request = urllib.request.Request(f"{url}/version", headers={"Authorization": "Bearer from-environment"})
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

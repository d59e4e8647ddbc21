"""Everyday kubectl against the server."""

import os
import shutil
import subprocess

import pytest
import yaml

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


class Kubectl:
    """Runs kubectl with a home of its own, so that no cache and no configuration of the user takes part."""

    def __init__(self, home, kubeconfig):
        self._home = home
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def start(self, *arguments, **options):
        return subprocess.Popen(
            ["kubectl", *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )

    def __call__(self, *arguments, code=0, editor=None, document=None):
        """What kubectl says, if it ends with `code`. `document` is given to it as a file."""
        environment = self._environment | ({"EDITOR": editor} if editor else {})
        if document is not None:
            file = self._home / "document.yaml"
            file.write_text(yaml.safe_dump(document))
            arguments = [*arguments, "-f", str(file)]
        done = subprocess.run(
            ["kubectl", *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def kubectl(cluster, tmp_path):
    cluster.kubeconfig(tmp_path / "config")
    return Kubectl(tmp_path, tmp_path / "config")


def rows(output):
    return [line.split() for line in output.splitlines()]


def test_get_prints_the_columns_of_the_definition(kubectl, api):
    api.create("one", {"mode": "a"})
    status = {"conditions": [{"type": "Ready", "reason": "Done"}]}
    api.merge(f"{api.widgets}/one/status", {"status": status})
    heading, row = rows(kubectl("get", "widgets"))
    assert heading == ["NAME", "READY", "SIZE", "AGE"]
    assert row[:3] == ["one", "Done", "1"]
    assert rows(kubectl("get", "wd", "-o", "wide"))[0] == ["NAME", "READY", "SIZE", "MODE", "AGE"]
    assert rows(kubectl("get", "toys", "-A"))[1][:2] == ["default", "one"]
    assert "toys" in kubectl("api-resources", "-o", "wide")
    assert yaml.safe_load(kubectl("get", "widget", "one", "-o", "yaml")) == api.get(f"{api.widgets}/one")
    assert kubectl("get", "widgets", "-o", "name", "--chunk-size=1") == "widget.example.dev/one\n"


def test_get_of_nothing_and_of_an_unknown_kind(kubectl):
    assert "No resources found" in kubectl("get", "widgets")
    assert "NotFound" in kubectl("get", "widget", "no", code=1)
    assert "doesn't have a resource type" in kubectl("get", "pods", code=1)


@pytest.mark.parametrize("validate", [["--validate=false"], []])
def test_apply_creates_leaves_and_configures(kubectl, api, validate):
    assert "created" in kubectl("apply", *validate, document=api.widget("one", {"mode": "a"}))
    assert "unchanged" in kubectl("apply", *validate, document=api.widget("one", {"mode": "a"}))
    assert "configured" in kubectl("apply", *validate, document=api.widget("one", {"size": 2}))
    assert api.get(f"{api.widgets}/one")["spec"] == {"image": "i", "size": 2}


def test_apply_reports_what_the_server_refuses(kubectl, api):
    assert 'unknown field "spec.bogus"' in kubectl("apply", document=api.widget("one", {"bogus": 1}), code=1)
    assert "spec.mode" in kubectl("apply", document=api.widget("one", {"mode": "zz"}), code=1)
    assert "not available" in kubectl("apply", "--server-side", document=api.widget("one"), code=1)
    assert api.names() == []


def test_apply_of_built_in_kinds_and_definitions(kubectl, api, definition):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "1"}}
    assert "created" in kubectl("apply", document=secret)
    assert "configured" in kubectl("apply", document={**secret, "stringData": {"a": "2"}})
    assert "configured" in kubectl("apply", document=definition)
    assert "secret" in kubectl("delete", "secret", "s")


def test_b47_apply_of_large_user_data_works(kubectl, api):
    assert "created" in kubectl("apply", document=api.widget("one", {"note": "x" * 100_000}))
    assert len(api.get(f"{api.widgets}/one")["spec"]["note"]) == 100_000


def test_describe_shows_the_object_and_its_events(kubectl, api):
    one = api.create("one", labels={"colour": "red"})
    about = {"kind": "Widget", "name": "one", "namespace": "default", "uid": one["metadata"]["uid"]}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Built", "message": "it is there"}
    api.call("POST", "/api/v1/namespaces/default/events", {**event, "type": "Normal", "source": {"component": "me"}})
    shown = kubectl("describe", "widget", "one")
    assert "colour=red" in shown
    assert "it is there" in shown
    assert "Active" in kubectl("describe", "namespace", "default")
    assert "Built" in kubectl("get", "events")


def test_edit_stores_what_the_editor_wrote(kubectl, api):
    api.create("one")
    assert "edited" in kubectl("edit", "widget", "one", editor="sed -i 's/size: 1/size: 8/'")
    assert api.get(f"{api.widgets}/one")["spec"]["size"] == 8
    api.call("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}, "data": {"a": "before"}})
    assert "edited" in kubectl("edit", "configmap", "m", editor="sed -i s/before/after/")
    assert api.get("/api/v1/namespaces/default/configmaps/m")["data"] == {"a": "after"}


def test_patch_label_and_annotate(kubectl, api):
    api.create("one")
    kubectl("patch", "widget", "one", "--type=merge", "-p", '{"spec":{"size":2}}')
    kubectl("patch", "widget", "one", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}')
    kubectl("patch", "widget", "one", "--type=json", "-p", '[{"op":"add","path":"/spec/mode","value":"b"}]')
    kubectl("label", "widget", "one", "colour=red")
    kubectl("annotate", "widget", "one", "note=text")
    one = api.get(f"{api.widgets}/one")
    assert one["spec"] == {"image": "i", "size": 2, "mode": "b"}
    assert one["status"] == {"phase": "Up"}
    assert (one["metadata"]["labels"], one["metadata"]["annotations"]) == ({"colour": "red"}, {"note": "text"})
    assert "not supported" in kubectl("patch", "widget", "one", "-p", '{"spec":{"size":3}}', code=1)


def test_wait_sees_conditions_values_and_deletion(kubectl, api):
    api.create("one")
    waiting = [
        kubectl.start("wait", "widget/one", "--timeout=30s", f"--for={what}")
        for what in ("jsonpath={.status.phase}=Up", "delete")
    ]
    api.merge(f"{api.widgets}/one/status", {"status": {"phase": "Up"}})
    assert "condition met" in waiting[0].communicate(timeout=60)[0]
    api.call("DELETE", f"{api.widgets}/one")
    waiting[1].communicate(timeout=60)
    assert [process.returncode for process in waiting] == [0, 0]


def test_delete_waits_for_finalizers(kubectl, api):
    api.create("one", finalizers=["held.dev/f"])
    deleting = kubectl.start("delete", "widget", "one")
    assert "deleted" in deleting.stdout.readline()
    assert deleting.poll() is None
    api.merge(f"{api.widgets}/one", {"metadata": {"finalizers": None}})
    deleting.communicate(timeout=60)
    assert deleting.returncode == 0


def test_watching_get_prints_a_row_for_each_change_under_one_heading(kubectl, api):
    api.create("one")
    watching = kubectl.start("get", "widgets", "--watch")
    try:
        lines = [watching.stdout.readline() for _ in range(2)]
        api.merge(f"{api.widgets}/one", {"spec": {"size": 9}})
        lines.append(watching.stdout.readline())
    finally:
        watching.terminate()
        watching.communicate(timeout=60)
    assert [line.split()[0] for line in lines] == ["NAME", "one", "one"]
    assert lines[2].split()[1] == "9"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "widget.spec"], "error"),
        (["delete", "widget", "one", "--dry-run=server"], "dryRun is not implemented"),
        (["delete", "widget", "one", "--cascade=orphan"], "supported values: Background, Foreground"),
        (["create", "namespace", "team"], "no protobuf"),
    ],
)
def test_what_is_not_implemented_fails_loudly(kubectl, api, arguments, message):
    api.create("one")
    assert message in kubectl(*arguments, code=1)
    assert api.names() == ["one"]


def test_deleted_namespace_is_gone_with_its_contents(kubectl, api):
    kubectl("apply", document={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    kubectl("apply", "-n", "team", document=api.widget("one"))
    assert "deleted" in kubectl("delete", "namespace", "team", "--timeout=30s")
    assert api.get("/apis/example.dev/v1/widgets")["items"] == []

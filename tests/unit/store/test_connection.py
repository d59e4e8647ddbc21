"""Credentials that change under a running process, and connections after a fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.servers import ports
from server_api.settings import Settings
from server_api.store import kinds
from server_api.store.client import KubernetesClient
from server_api.store.connection import Connection, configuration_source

Http = Callable[..., bytes]


def kubeconfig(path: Path, url: str, token_file: Path) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"tokenFile": str(token_file)}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_b44_a_rotated_token_is_read_after_one_401(scripted_api: Any, http: Http, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    settings = Settings(kubeconfig=kubeconfig(tmp_path / "kubeconfig", scripted_api.url, token))
    client = KubernetesClient.from_settings(settings)
    scripted_api.will_answer(http(200, {}), http(401, {}), http(200, {"metadata": {"name": "x"}}))
    client.get(kinds.SERVER, "ns", "x")
    token.write_text("second")
    assert client.get(kinds.SERVER, "ns", "x") == {"metadata": {"name": "x"}}
    client.get(kinds.SERVER, "ns", "x")
    sent = [request.headers["authorization"] for request in scripted_api.requests]
    assert sent == ["Bearer first", "Bearer first", "Bearer second", "Bearer second"]


def test_b44_a_second_401_is_final(scripted_api: Any, http: Http, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    settings = Settings(kubeconfig=kubeconfig(tmp_path / "kubeconfig", scripted_api.url, token))
    scripted_api.will_answer(http(401, {"reason": "Unauthorized"}))
    with pytest.raises(ports.Denied) as raised:
        KubernetesClient.from_settings(settings).get(kinds.SERVER, "ns", "x")
    assert len(scripted_api.requests) == 2
    assert "first" not in str(raised.value)


def test_b44_a_watch_renews_its_credentials_too(scripted_api: Any, http: Http, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    settings = Settings(kubeconfig=kubeconfig(tmp_path / "kubeconfig", scripted_api.url, token))
    scripted_api.will_answer(http(401, {}), http(200, {"type": "ADDED", "object": {"n": 1}}))
    # The last line of the scripted answer ends with the connection.
    assert list(KubernetesClient.from_settings(settings).watch(kinds.SERVER, "ns", "1")) == []
    assert len(scripted_api.requests) == 2


def test_kubeconfig_is_found_by_its_variable(
    kubernetes: EmbeddedKubernetes, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kubeconfig"
    kubernetes.kubeconfig(path, namespace)
    monkeypatch.setenv("KUBECONFIG", str(path))
    KubernetesClient.from_settings(Settings(namespace=namespace)).ping()


def test_no_configuration_at_all_is_told_when_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    client = KubernetesClient.from_settings(Settings())
    with pytest.raises(ports.Unavailable, match="no usable client configuration"):
        client.ping()


def test_b65_a_session_taken_along_by_a_fork_is_not_used(
    scripted_api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    source = configuration_source(kubeconfig(tmp_path / "kubeconfig", scripted_api.url, token))
    connection = Connection(source, 4)
    session = connection.session()
    assert connection.session() is session
    monkeypatch.setattr(os, "getpid", lambda: session.process + 1)
    assert connection.session() is not session


def test_threads_refused_together_read_the_configuration_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    connection = Connection(configuration_source(kubeconfig(tmp_path / "kubeconfig", "http://localhost", token)), 4)
    refused = connection.session()
    renewed = connection.renewed(refused)
    assert renewed is not refused
    assert connection.renewed(refused) is renewed

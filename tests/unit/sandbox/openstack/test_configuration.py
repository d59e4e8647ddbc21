"""The configuration keeps to loopback and to the given directories, and lifts what would stop a test."""

import configparser
import os
import re
from pathlib import Path

import pytest

from server_api.sandbox.openstack import configuration
from server_api.sandbox.openstack.services import SERVICES

PORTS = {"keystone": 1, "nova": 2, "neutron": 3, "placement": 4, "glance": 5}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    virtualenv = tmp_path / "venv"
    (virtualenv / "etc/nova").mkdir(parents=True)
    (virtualenv / "etc/nova/api-paste.ini").write_text("")
    configuration.write(tmp_path / "state", virtualenv, PORTS)
    return tmp_path / "state"


def read(state: Path, name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, default_section="none")
    service = next(service for service in SERVICES if service.name == name)
    parser.read(service.config_file(state))
    return parser


@pytest.mark.parametrize("service", [service.name for service in SERVICES])
def test_every_address_is_loopback_and_every_file_below_the_given_folders(
    state: Path, tmp_path: Path, service: str
) -> None:
    for section in read(state, service).values():
        for value in section.values():
            assert re.fullmatch(r"(https?|ws)://127\.0\.0\.1:.*", value) or not re.match("https?:|ws:", value)
            if match := re.match(r"(?:sqlite:///|file://)?(/[^?]+)", value):
                assert match[1].startswith(str(tmp_path))


def test_quotas_are_unlimited(state: Path) -> None:
    nova, neutron = read(state, "nova")["quota"], read(state, "neutron")["quotas"]
    assert {nova[name] for name in ("instances", "cores", "ram", "key_pairs")} == {"-1"}
    assert {neutron[f"quota_{name}"] for name in ("network", "port", "router", "floatingip")} == {"-1"}


def test_truth_is_written_as_oslo_reads_it_and_numbers_stay_numbers() -> None:
    text = configuration.render({"DEFAULT": {"yes": True, "no": False, "one": 1, "zero": 0}})
    assert text == "[DEFAULT]\nyes = true\nno = false\none = 1\nzero = 0\n"


def test_the_services_get_neither_our_cloud_nor_our_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OS_CLOUD", "HTTPS_PROXY", "all_proxy", "PYTHONHOME"):
        monkeypatch.setenv(name, "theirs")
    environment = configuration.environment(tmp_path / "state", tmp_path / "venv")
    assert not {"OS_CLOUD", "HTTPS_PROXY", "all_proxy", "PYTHONHOME"} & set(environment)
    assert environment["PATH"].split(os.pathsep)[0] == str(tmp_path / "venv/bin")
    assert environment["SANDBOX_OPENSTACK_RULES"] == str(tmp_path / "state/rules.json")


def test_nova_alone_is_told_the_hosts_and_whom_to_wait_for(tmp_path: Path) -> None:
    nova = configuration.serve_command(tmp_path, "nova", PORTS, ["a", "b"])
    assert nova[nova.index("--hosts") + 1] == "a,b"
    assert nova.count("--wait-for") == 2
    assert "--hosts" not in configuration.serve_command(tmp_path, "glance", PORTS, ["a", "b"])

"""Every setting: its name, type, default and meaning, in one place.

A setting is read from the environment variable ``SERVER_API_<NAME>``. ``server-api settings`` prints this table.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any

PREFIX = "SERVER_API_"


def _setting(default: Any, meaning: str, *, above: float = 0, zero: bool = False) -> Any:
    """Describe a setting. A number has to be greater than ``above``; ``zero`` says that it may be 0 as well."""
    return field(default=default, metadata={"meaning": meaning, "above": above, "zero": zero})


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one process."""

    namespace: str = _setting("unikorn-region", "Kubernetes namespace that holds every object.")
    kubeconfig: Path | None = _setting(
        None, "Kubernetes client configuration; empty: $KUBECONFIG, or the pod's service account."
    )
    identity_source: str = _setting(
        "token-file", "Who tells callers apart: token-file, identity-service or oidc (docs/operations.md)."
    )
    identity_url: str = _setting("", "Scheme and host of the service that issues tokens; empty: the operator does.")
    identity_ca: Path | None = _setting(
        None, "PEM file of who may sign the certificate of identity service or OIDC issuer; empty: the system's."
    )
    identity_client_certificate: Path | None = _setting(
        None, "PEM file of the certificate we show the identity service; empty: none."
    )
    identity_client_key: Path | None = _setting(None, "PEM file of its key; empty: in the same file.")
    acl_cache_seconds: float = _setting(
        60.0, "Seconds that an answer of the identity service about rights is kept.", zero=True
    )
    tokens_file: Path | None = _setting(None, "File of bearer tokens and their rights, for token-file.")
    oidc_issuer: str = _setting("", "URL of the OIDC issuer, exactly as its tokens say it.")
    oidc_audience: str = _setting("", "Audience that a token of the OIDC issuer must be for.")
    oidc_algorithms: str = _setting("RS256,ES256", "Signatures accepted from the OIDC issuer, with commas between.")
    oidc_keys_url: str = _setting("", "URL of the OIDC issuer's keys (JWKS); empty: where the issuer says they are.")
    oidc_subject_claim: str = _setting("sub", "Claim of a token that names its subject.")
    oidc_groups_claim: str = _setting("groups", "Claim of a token that lists the groups of its subject.")
    policy_file: Path | None = _setting(None, "File of roles and who has them, for oidc.")
    trusted_proxies: str = _setting(
        "",
        "Addresses and networks of proxies whose word on clients' certificates and addresses counts; empty: nobody's.",
    )
    tls_certificate: Path | None = _setting(
        None, "PEM file of the certificate that gunicorn serves HTTPS with; empty: plain HTTP, TLS ends in front."
    )
    tls_key: Path | None = _setting(None, "PEM file of its key; empty: in the same file.")
    tls_client_ca: Path | None = _setting(
        None, "PEM file of who may sign the certificates of services that call over our own TLS; empty: none may."
    )

    request_deadline: float = _setting(10.0, "Seconds a request may take in all; then 504.")
    connect_timeout: float = _setting(3.0, "Seconds to wait for a connection to a dependency.")
    read_timeout: float = _setting(10.0, "Seconds to wait for a dependency's answer.")
    max_body_bytes: int = _setting(1_048_576, "Largest request body; a larger one is answered 413.")
    strict_authorization: bool = _setting(
        False, "Answer 500 when a view answered without an authorization check; otherwise only sound an alarm."
    )
    v1_sunset: date = _setting(date(2027, 12, 31), "Day from which on v1 may be gone: its header Sunset (YYYY-MM-DD).")
    v1_disabled: str = _setting(
        "", "Operations of v1 that answer 410, by their IDs and with commas between, or all; empty: none."
    )
    cors_origin: str = _setting(
        "", "Origins whose pages may call the API from a browser, with commas between, or *; empty: none."
    )
    audit_log: str = _setting("stdout", "Where audit events go: stdout (among the logs), off, or a file's path.")
    audit_log_bytes: int = _setting(
        104_857_600, "Size at which the audit file is rotated; 0: never, because somebody else does.", zero=True
    )
    audit_log_files: int = _setting(10, "Rotated audit files that are kept.")
    limit_subject: str = _setting(
        "", "Requests of one user or service account, as RATE:BURST (a second, at once); empty: no limit."
    )
    limit_service: str = _setting(
        "", "The same for a service that authenticates with a certificate, whomever it calls for."
    )
    limit_peer: str = _setting("", "The same for one address, of requests that nobody is authenticated for.")
    kubernetes_connections: int = _setting(32, "Connections to the Kubernetes API that one process keeps.")
    drain_seconds: float = _setting(5.0, "Seconds that /readyz fails before the listener closes on SIGTERM.", zero=True)

    flavor_cache_seconds: float = _setting(60.0, "Seconds that the list of exported flavors is kept.", zero=True)
    image_cache_seconds: float = _setting(15.0, "Seconds that the list of exported images is kept.", zero=True)
    cloud_session_seconds: float = _setting(
        3600.0, "Seconds that a log-in to the cloud is kept in memory, and the password it was made with."
    )
    openstack_region: str = _setting("", "Region name in the Keystone catalogue; empty: the only one.")

    workers: int = _setting(2, "gunicorn worker processes.")
    threads: int = _setting(8, "Threads in each worker.")
    bind: str = _setting("127.0.0.1:6080", "Address the API listens on.")

    controller_bind: str = _setting("127.0.0.1:6081", "Address of the controller's probes and metrics.")
    controller_workers: int = _setting(8, "Servers the controller works on at once.")
    retry_seconds: float = _setting(10.0, "Seconds until a pass that yielded or failed is tried again.")
    create_attempts: int = _setting(
        3, "Creates of a server's instance that may fail in all; below 1 means 1.", above=-math.inf
    )
    monitor_seconds: float = _setting(10.0, "Seconds between two sweeps of the monitor.")
    watch_seconds: float = _setting(300.0, "Seconds after which a watch is renewed.")
    lease_name: str = _setting("server-api-controller", "Name of the leader's Lease.")
    lease_seconds: float = _setting(15.0, "Seconds after which a silent leader is replaced.")
    lease_renew_seconds: float = _setting(10.0, "Seconds a leader may act after its last renewal; less than the lease.")
    lease_retry_seconds: float = _setting(2.0, "Seconds between attempts to acquire or renew.")

    log_level: str = _setting("info", "debug, info, warning or error.")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings. Raises ValueError naming the variable whose value cannot be understood."""
        environment = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for setting in fields(cls):
            text = environment.get(PREFIX + setting.name.upper(), "")
            if text:
                values[setting.name] = _parse(setting, text)
        return cls(**values)

    @classmethod
    def table(cls) -> list[tuple[str, str, str]]:
        """Return name of the variable, default and meaning of every setting."""
        return [
            (
                PREFIX + setting.name.upper(),
                "" if setting.default is None else str(setting.default),
                setting.metadata["meaning"],
            )
            for setting in fields(cls)
        ]


def _parse(setting: Field[Any], text: str) -> Any:
    type_ = str(setting.type)
    try:
        if type_ == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if type_ == "date":
            return date.fromisoformat(text)
        if type_ in ("int", "float"):
            return _number(int(text) if type_ == "int" else float(text), setting)
    except (ValueError, KeyError, OverflowError):
        raise ValueError(f"{PREFIX}{setting.name.upper()} is not a valid {type_}") from None
    return Path(text) if type_.startswith("Path") else text


def _number(value: float, setting: Field[Any]) -> float:
    allowed = value > setting.metadata["above"] or (value == 0 and setting.metadata["zero"])
    if not math.isfinite(value) or not allowed:
        raise ValueError
    return value

"""Structured logs: one JSON object per line on standard output, without secrets.

Lines of libraries that use ``logging`` (gunicorn among them) take the same form and the same redaction.
"""

from __future__ import annotations

import json
import logging.config
import re
from collections.abc import Callable, MutableMapping
from typing import Any

import orjson
import structlog

from server_api import trace

REDACTED = "[redacted]"

AUDIT_LOGGER = "server_api.audit"
"""Name of the logger of audit events, which are written at every log level."""

_SECRET_NAME = re.compile(
    r"authorization|cookie|token|passw|secret|private_?key|user_?data|admin_?pass|console_?url", re.IGNORECASE
)
_SECRET_TEXT = (
    re.compile(r"(?i)(bearer\s+)[\w.~+/=-]+"),
    re.compile(r"(?i)(x-(?:auth|subject|service)-token['\"]?\s*[:=]\s*['\"]?)[^\s'\",}]+"),
    re.compile(
        r"(?i)(['\"](?:user_?data|password|admin_?pass|private_?key|ssh_?private_?key)['\"]\s*:\s*['\"])[^'\"]*"
    ),
    re.compile(r"(?i)([?&](?:token|password)=)[^&\s'\"]+"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
)

# Whole requests and answers appear in these libraries' debug lines: credentials, user data and stored Secrets.
_NEVER_DEBUG = ("keystoneauth", "novaclient", "glanceclient", "openstack", "urllib3", "kubernetes", "stevedore")

Event = MutableMapping[str, Any]


def configure(level: str = "info") -> None:
    """Send this process's logs to standard output. ``level``: debug, info, warning or error.

    Raises ValueError for another level. May be called again, for example once per worker process.
    """
    logging.config.dictConfig(dict_config(level))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def dict_config(level: str = "info") -> dict[str, Any]:
    """Return the standard library's side of the configuration, as ``logging.config.dictConfig`` takes it."""
    name = level.upper()
    if name not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ValueError("the log level is one of debug, info, warning and error")
    quiet = "INFO" if name == "DEBUG" else name
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, _render],
                "foreign_pre_chain": _shared_processors(),
            }
        },
        "handlers": {"stdout": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stdout"}},
        "root": {"level": name, "handlers": ["stdout"]},
        "loggers": {
            # gunicorn gives its loggers handlers of their own unless it is told otherwise.
            "gunicorn.error": {"level": name, "handlers": ["stdout"], "propagate": False},
            # The application writes its own line for each request.
            "gunicorn.access": {"level": "CRITICAL", "handlers": [], "propagate": False},
            AUDIT_LOGGER: {"level": "INFO"},
            **{library: {"level": quiet} for library in _NEVER_DEBUG},
        },
    }


def redact(_logger: Any, _method: str, event: Event) -> Event:
    """Replace values of secret names, and secrets inside of texts, at every depth (structlog processor)."""
    for name, value in event.items():
        event[name] = _clean(name, value)
    return event


def _clean(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if _SECRET_NAME.search(name):
        return REDACTED
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, dict):
        return {str(key): _clean(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean("", item) for item in value]
    return _clean_text(str(value))


def _clean_text(text: str) -> str:
    for pattern in _SECRET_TEXT:
        text = pattern.sub(rf"\1{REDACTED}", text)
    return text


def _add_trace(_logger: Any, _method: str, event: Event) -> Event:
    trace_id = trace.current()
    if trace_id is not None:
        event.setdefault("trace_id", trace_id)
    return event


def _render(_logger: Any, _method: str, event: Event) -> str:
    try:
        return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # A name from a token may hold what is no text at all, which must not cost the line.
        return json.dumps(event, default=str)


def _shared_processors() -> list[Callable[[Any, str, Event], Any]]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _add_trace,
    ]

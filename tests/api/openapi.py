"""Checks answers against the OpenAPI document, so that no test can pass with an answer the document forbids."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from openapi_schema_validator import OAS30ReadValidator, oas30_format_checker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

_URI = "urn:server-api"
ERROR = "/components/schemas/Error"


class Document:
    """The document of one application."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._registry: Registry[Any] = Registry().with_resource(_URI, Resource(document, DRAFT4))

    def check(self, method: str, path: str, status: int, content_type: str | None, body: Any) -> None:
        """Fail unless the document allows the answer. A path it does not describe may only answer with errors."""
        operation = self._operation(method, path)
        if operation is None:
            assert status >= 400, f"{method} {path} is not documented and answered {status}"
            self.check_schema(ERROR, body)
            return
        pointer = f"{operation}/responses/{status}"
        response = self.at(pointer)
        assert response is not None, f"{method} {path} answered {status}, which is not documented"
        if "$ref" in response:
            pointer = response["$ref"].removeprefix("#")
            response = self.at(pointer)
        if "content" not in response:
            assert content_type is None, f"{method} {path} answered with content"
            assert body is None, f"{method} {path} answered with content"
            return
        assert content_type == "application/json", f"{method} {path} answered with {content_type}"
        self.check_schema(f"{pointer}/content/application~1json/schema", body)

    def check_schema(self, pointer: str, instance: Any) -> None:
        """Fail unless the instance is valid by the schema at a place in the document."""
        schema = {"$ref": f"{_URI}#{pointer}"}
        validator = OAS30ReadValidator(schema, registry=self._registry, format_checker=oas30_format_checker)
        faults = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(instance)]
        assert not faults, faults

    def at(self, pointer: str) -> Any:
        """Return what is at a JSON pointer, None if there is nothing."""
        found: Any = self.document
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                return None
            found = found[name]
        return found

    def _operation(self, method: str, path: str) -> str | None:
        """Return the JSON pointer of the operation."""
        for template, pattern in self._paths:
            if pattern.fullmatch(path) and method.lower() in self.document["paths"][template]:
                return f"/paths/{template.replace('/', '~1')}/{method.lower()}"
        return None

    @cached_property
    def _paths(self) -> list[tuple[str, re.Pattern[str]]]:
        return [
            (template, re.compile("[^/]+".join(map(re.escape, re.split(r"\{\w+\}", template)))))
            for template in self.document["paths"]
        ]

"""The kind of blueprint every API view lives in: our parser, and errors documented by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask_smorest import Blueprint
from marshmallow import Schema

from server_api.http import query
from server_api.http.parsing import RequestParser
from server_api.http.path_parameters import described, python_name
from server_api.http.routes import operation_id

View = TypeVar("View", bound=Callable[..., Any])

ERROR_COMPONENTS = {
    400: ("InvalidRequest", "A parameter or the body is malformed, or the server's state does not allow this."),
    401: ("AccessDenied", "No credentials, or credentials that are not accepted."),
    403: ("Forbidden", "The caller lacks a permission."),
    404: ("NotFound", "Something the request names does not exist."),
    409: ("Conflict", "The name is taken, or the object was changed meanwhile."),
    410: ("Gone", "The operator has turned this operation off; the header Link names its successor."),
    413: ("RequestEntityTooLarge", "The body is too large."),
    415: ("UnsupportedMediaType", "The body's content type is not application/json."),
    422: ("UnprocessableContent", "The request is well formed and breaks a rule."),
    429: ("TooManyRequests", "The caller, or the address the request comes from, makes too many requests."),
    500: ("ServerError", "An unexpected failure; its details are in the logs, under the trace ID."),
    502: ("DependencyFailed", "The object store or the cloud failed. Retry-After is passed on."),
    503: ("NotReady", "The process is not ready for requests."),
    504: ("DependencyTimedOut", "The object store or the cloud did not answer in time."),
}
"""Status of an error, the name of its response in the OpenAPI document, and what it means."""

ALWAYS = (400, 401, 429, 500)
DEPENDENCIES = (502, 504)


class ApiBlueprint(Blueprint):  # type: ignore[misc]  # flask-smorest ships no types
    """A flask-smorest blueprint with this API's conventions.

    Routes name path parameters as the API does (``serverID``); views take them in Python's way (``server_id``).
    """

    ARGUMENTS_PARSER = RequestParser()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.url_value_preprocessor(_rename_path_parameters)

    def route(self, rule: str, **options: Any) -> Callable[[View], View]:
        """Serve a view at a path. Decorates it.

        The operation is called after the view in the document, so a view's name is part of the API.
        """
        route = super().route(rule, parameters=described(rule), **options)

        def decorate(view: View) -> View:
            return cast(View, route(self.doc(operationId=operation_id(view.__name__))(view)))

        return decorate

    def arguments(
        self, schema: type[Schema], *, location: str = "json", typed: bool = False, **options: Any
    ) -> Callable[[View], View]:
        """Parse body or query by a schema and hand the result to a view. Decorates it.

        ``typed`` is for query parameters that are more than text: they are checked before authentication already.
        """
        parsed = cast(Callable[[View], View], super().arguments(schema, location=location, **options))

        def decorate(view: View) -> View:
            return query.takes(parsed(view), schema, typed=typed) if location == "query" else parsed(view)

        return decorate

    def response(
        self, status: int, schema: type[Schema] | Schema | None = None, **options: Any
    ) -> Callable[[View], View]:
        """Document what a view answers when all went well. Decorates it."""
        return cast(Callable[[View], View], super().response(status, schema, **options))

    def errors(self, *statuses: int) -> Callable[[View], View]:
        """Document the errors a view may answer with, by status. Decorates it."""

        def decorate(view: View) -> View:
            for status in statuses:
                view = self.alt_response(status, response=ERROR_COMPONENTS[status][0])(view)
            return view

        return decorate

    def _prepare_arguments_doc(self, doc: Any, doc_info: Any, **options: Any) -> Any:
        # flask-smorest names a response of its own for what its parser refuses; ours are named by ``errors``.
        doc_info.get("arguments", {}).pop("responses", None)
        return super()._prepare_arguments_doc(doc, doc_info, **options)

    @staticmethod
    def _prepare_response_doc(doc: Any, doc_info: Any, **options: Any) -> Any:
        doc = Blueprint._prepare_response_doc(doc, doc_info, **options)
        doc["responses"] = dict(sorted(doc["responses"].items()))
        return doc


def _rename_path_parameters(_endpoint: str | None, values: dict[str, Any] | None) -> None:
    if values is None:
        return
    for name in list(values):
        values[python_name(name)] = values.pop(name)

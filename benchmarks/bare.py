"""The least a Flask application can do: the floor that the API is measured against.

It answers the same bytes' worth of JSON as the API, from memory, with no check of anything.
"""

import json
import os
from pathlib import Path

import orjson
from flask import Flask, Response, request

servers = orjson.loads(Path(os.environ["BENCHMARK_SERVERS"]).read_bytes())

app = Flask(__name__)


def _json(content: object, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, mimetype="application/json")


@app.get("/readyz")
def ready() -> Response:
    """Say that requests are answered."""
    return _json({})


@app.get("/servers")
def list_servers() -> Response:
    """Answer every server."""
    return _json(servers)


@app.get("/servers/<server_id>")
def get_server(server_id: str) -> Response:
    """Answer one server, whichever is asked for."""
    return _json(servers[0])


@app.post("/servers")
def create_server() -> Response:
    """Read the request and answer one server."""
    json.loads(request.data)
    return _json(servers[0], 201)

"""The page at /docs in a real browser: it shows every operation, and nothing leaves the machine."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright
from werkzeug.serving import make_server

from server_api.http.application import build_app
from server_api.http.services import Services
from server_api.settings import Settings

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

pytestmark = [
    pytest.mark.browser,
    # In CI a missing browser is a failure: .ci/run installs it.
    pytest.mark.skipif(CHROMIUM is None and not os.environ.get("CI"), reason="chromium is not installed"),
]


@pytest.fixture
def url() -> Iterator[str]:
    # The page needs none of the use cases: only the document that describes them.
    app = build_app(cast(Services, Mock()), Settings())
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser.new_page(viewport={"width": 1200, "height": 1600})
        browser.close()


def test_the_page_shows_every_operation_and_asks_nobody_else(page: Page, url: str, tmp_path: Path) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))

    page.goto(f"{url}/docs")
    page.wait_for_selector(".opblock")
    document = page.request.get(f"{url}/openapi.json").json()
    operations = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in item
        if method in ("get", "post", "put", "delete", "patch")
    }
    shown = {
        (
            block.locator(".opblock-summary-method").inner_text().strip(),
            (block.locator("[data-path]").first.get_attribute("data-path") or "").replace("\u200b", ""),
        )
        for block in page.locator(".opblock").all()
    }
    screenshot = Path(os.environ.get("SERVER_API_SCREENSHOT", tmp_path / "docs.png"))
    page.screenshot(path=screenshot, full_page=True)

    assert operations
    assert shown == operations
    assert screenshot.stat().st_size > 20_000
    assert {urlsplit(each).netloc for each in asked if not each.startswith("data:")} == {urlsplit(url).netloc}
    assert complaints == []

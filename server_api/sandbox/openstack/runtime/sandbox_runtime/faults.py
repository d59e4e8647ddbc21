"""WSGI middleware that delays, refuses, loses or mangles answers as the rules file says.

An HTTP rule (one that has a member `service`, `method` or `path`):

    {"service": "nova",            # nova glance neutron keystone placement; a glob, as are the next two
     "method": "POST",
     "path": "/v2.1/servers*",     # without the query
     "delay": 2.5,                 # seconds
     "status": 503,                # answer this instead of doing the work
     "headers": {"Retry-After": "3"},
     "body": "...",                # of that answer; a JSON error in OpenStack's manner if absent
     "after": true,                # do the work first: delay and lose only the answer
     "truncate": true,             # do the work and send the first half of the answer: broken JSON
     "disconnect": true,           # close the connection instead of answering
     "times": 2,                   # for the first two requests only
     "id": "any text"}             # what the count belongs to; the rule's own text if absent

All matching rules delay; the first with an outcome (status, truncate, disconnect) decides.
Services call each other by the same APIs, and the rules hold for these calls as well.
"""

import http
import json
import time

from sandbox_runtime.rule_book import rule_book

# WSGI knows no way to drop a connection: serve.py puts a function into the environ under this name
DISCONNECT = "sandbox.disconnect"
OUTCOMES = ("status", "truncate", "disconnect")


class Faults:
    """The middleware in front of `application`, which is the service called `service`."""

    def __init__(self, application, service, rules=rule_book, sleep=time.sleep):
        self._application = application
        self._service = service
        self._rules = rules
        self._sleep = sleep

    def __call__(self, environ, start_response):
        rule, before, after = self._choose(environ)
        self._sleep_if(before)
        if not rule and not after:
            return self._application(environ, start_response)
        work_first = bool(after) or rule.get("after") or rule.get("truncate")
        if not work_first:
            return self._replace(rule, environ, start_response)
        status, headers, body = self._work(environ)
        self._sleep_if(after)
        if rule.get("truncate"):
            body = body[: len(body) // 2]
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(body))))
        elif rule:
            return self._replace(rule, environ, start_response)
        start_response(status, headers)
        return [body]

    def _choose(self, environ):
        """Return the rule that decides or an empty one, and the seconds to wait before and after the work."""
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        matching = self._rules.matching(
            "service", "method", "path", service=self._service, method=environ["REQUEST_METHOD"], path=path
        )
        before = after = 0.0
        for rule in matching:
            if rule.get("after"):
                after += float(rule.get("delay", 0))
            else:
                before += float(rule.get("delay", 0))
            if any(rule.get(outcome) for outcome in OUTCOMES):
                return rule, before, after
        return {}, before, after

    def _sleep_if(self, seconds):
        if seconds > 0:
            self._sleep(seconds)

    def _work(self, environ):
        """Run the application to its end: (status, headers, whole body)."""
        answer = {}
        written = []

        def start_response(status, headers, exc_info=None):
            answer.update(status=status, headers=headers)
            return written.append

        body = self._application(environ, start_response)
        try:
            written.extend(body)
        finally:
            if hasattr(body, "close"):
                body.close()
        return answer["status"], answer["headers"], b"".join(written)

    @staticmethod
    def _replace(rule, environ, start_response):
        if rule.get("disconnect"):
            environ[DISCONNECT]()
            start_response("500 Disconnected", [("Content-Length", "0")])
            return []
        status = int(rule["status"])
        reason = http.HTTPStatus(status).phrase if status in http.HTTPStatus._value2member_map_ else "Unknown"
        default = json.dumps({"error": {"code": status, "title": reason, "message": "a rule of the sandbox says so"}})
        body = str(rule.get("body", default)).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        headers.update({name: str(value) for name, value in (rule.get("headers") or {}).items()})
        start_response(f"{status} {reason}", list(headers.items()))
        return [body]

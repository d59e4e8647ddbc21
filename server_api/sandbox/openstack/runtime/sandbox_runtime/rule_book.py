"""The rules file as the services see it: read, matched and counted. See docs/sandbox-rules.md."""

import fnmatch
import json
import logging
import os
import threading
from pathlib import Path

LOG = logging.getLogger(__name__)
RULES_FILE = "SANDBOX_OPENSTACK_RULES"


class RuleBook:
    """The rules of one file. A rule is a JSON object; what its members mean is its reader's business.

    The file is read at every look (tens of microseconds, against milliseconds of any request), so that a rule
    holds from the moment it is written. A file that is absent holds no rules; one that is no JSON list of
    objects changes nothing: the last good rules stay.
    """

    def __init__(self, path):
        self._path = Path(path)
        self._content = b""
        self._rules = []
        self._uses = {}
        self._lock = threading.Lock()

    def matching(self, *conditions, **patterns):
        """Yield the rules that have a member named as one of the `conditions`, and match all `patterns`.

        A pattern is the name of a member and the value to match: the member is a glob, absent it matches
        everything. Each rule yielded counts as used once: take no more from the iterator than you apply.
        """
        for rule in self._current():
            if not any(name in rule for name in conditions):
                continue
            if all(_matches(rule.get(name), value) for name, value in patterns.items()) and self._use(rule):
                yield rule

    def _current(self):
        try:
            content = self._path.read_bytes()
        except OSError:
            content = b""
        with self._lock:
            if content != self._content:
                self._content = content
                self._load(content)
            return self._rules

    def _load(self, content):
        try:
            rules = json.loads(content or b"[]")
        except ValueError as error:
            LOG.warning("%s is no JSON, the rules before it stay: %s", self._path, error)
            return
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            LOG.warning("%s is no list of objects, the rules before it stay", self._path)
            return
        self._rules = rules
        # a rule that was taken out and is put in again starts anew
        known = {_identity(rule) for rule in rules}
        self._uses = {identity: uses for identity, uses in self._uses.items() if identity in known}

    def _use(self, rule):
        """Count one use of `rule`; False if its `times` are used up."""
        if "times" not in rule:
            return True
        identity = _identity(rule)
        with self._lock:
            uses = self._uses.get(identity, 0)
            if uses >= int(rule["times"]):
                return False
            self._uses[identity] = uses + 1
            return True


def _matches(pattern, value):
    return pattern is None or fnmatch.fnmatchcase(value or "", str(pattern))


def _identity(rule):
    return str(rule["id"]) if "id" in rule else json.dumps(rule, sort_keys=True)


# one for the process, so that a rule is counted once
rule_book = RuleBook(os.environ.get(RULES_FILE, ""))

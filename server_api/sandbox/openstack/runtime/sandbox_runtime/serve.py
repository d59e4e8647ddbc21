"""usage: python -m sandbox_runtime.serve SERVICE PORT [--hosts HOST,HOST] [--wait-for URL]...

Serve one OpenStack service on 127.0.0.1:PORT under waitress, in one process with native threads. The
configuration is found through the environment, see server_api/sandbox/openstack/configuration.py.
"""

import argparse
import importlib
import logging
import os
import socket
import sys
import traceback

import waitress.channel
import waitress.server
import waitress.task

from sandbox_runtime import faults, sqlite

THREADS = 24
# a warning per request (neutronclient is deprecated) or per login (bcrypt takes 72 bytes) hides what matters
# in a log
NOISE = ("neutronclient.v2_0.client", "keystone.common.password_hashing")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("service")
    parser.add_argument("port", type=int)
    parser.add_argument("--hosts", default="")
    parser.add_argument("--wait-for", action="append", default=[])
    arguments = parser.parse_args()
    sys.argv = [arguments.service]  # the applications parse it again
    for name in NOISE:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        application = _load(arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # threads of a service that is half up would keep the process alive
    server = waitress.server.create_server(
        faults.Faults(application, arguments.service),
        host="127.0.0.1",
        port=arguments.port,
        threads=THREADS,
        ident=arguments.service,
        clear_untrusted_proxy_headers=True,
        channel_timeout=300,
    )
    server.channel_class = _Channel
    server.run()


def _load(arguments):
    sqlite.install()
    if arguments.service == "nova":
        from sandbox_runtime import nova_services

        return nova_services.load(arguments.hosts.split(","), arguments.wait_for)
    return importlib.import_module(f"{arguments.service}.wsgi.api").application


class _Task(waitress.task.WSGITask):
    def get_environment(self):
        environ = super().get_environment()
        environ[faults.DISCONNECT] = self._disconnect
        return environ

    def _disconnect(self):
        self.close_on_finish = True
        self.channel.socket.shutdown(socket.SHUT_RDWR)


class _Channel(waitress.channel.HTTPChannel):
    task_class = _Task


if __name__ == "__main__":
    main()

"""The API as a WSGI application, for gunicorn: ``gunicorn -c deploy/gunicorn.conf.py wsgi:app``."""

from server_api.app import create_app

app = create_app()

"""A real S3 server for tests: moto's, on a free port of this machine, in this process.

moto keeps *If-None-Match: \\** in two steps, a look and then a write (``S3Response.put_object``), with nothing between
them that would keep another request out. S3 itself decides it as one. So the server here lets one PUT in at a time,
before moto sees it; all else is moto's own. ``test_s3.py`` shows that moto alone gives one name to two writers.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from tests.support.patience import end
from tests.support.planted import SECRET

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class OnePutAtATime:
    """A WSGI application that hands requests on to another, each PUT only when the one before is done."""

    inner: Application
    turn: AbstractContextManager[Any]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self.turn if environ["REQUEST_METHOD"] == "PUT" else contextlib.nullcontext():
            return self.inner(environ, start_response)


@contextlib.contextmanager
def serving(turn: AbstractContextManager[Any] | None = None) -> Iterator[dict[str, str]]:
    """The environment in which ``s3://bucket`` is the bucket of a new server; all servers of one process share it.

    Args:
        turn: what a PUT waits for; a lock by default.
    """
    application = OnePutAtATime(DomainDispatcherApplication(create_backend_app), turn or threading.Lock())
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        _make_bucket(server.server_port)
        yield {
            "AWS_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.shutdown()
        end(thread)
        server.server_close()


def _make_bucket(port: int) -> None:
    with contextlib.closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("PUT", "/bucket")
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()

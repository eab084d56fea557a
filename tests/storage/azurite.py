"""A real Azure Blob server for tests: Azurite, on a free port of this machine, in a process of its own.

``tools/setup.py --azurite`` puts it into the environment's folder, where there is npm.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from email.utils import formatdate
from http.client import HTTPConnection
from pathlib import Path

# Not a secret: Azurite's documentation gives every installation this one account.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

PROGRAM = Path(sys.prefix) / "azurite" / "node_modules" / ".bin" / "azurite-blob"
_LISTENS = re.compile(r"successfully listens on http://127\.0\.0\.1:(\d+)")


def why_absent() -> str:
    """Why there is no Azurite here, or nothing where there is one."""
    if not shutil.which("node"):
        return "Azurite needs Node.js, and there is none on PATH"
    return "" if PROGRAM.exists() else "Azurite is not installed; `make clouds` does that where there is npm"


@contextlib.contextmanager
def serving() -> Iterator[dict[str, str]]:
    """The environment in which ``az://container`` is an empty container of a new server."""
    where = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"]
    command = [str(PROGRAM), *where, "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = _port_of(server)
            _make_container(port)
            yield {
                "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": KEY,
                "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/{ACCOUNT}",
                "AZURE_ALLOW_HTTP": "true",
            }
        finally:
            server.kill()


def _port_of(server: subprocess.Popen[str]) -> int:
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if listens := _LISTENS.search(line):
            return int(listens[1])
    raise AssertionError("Azurite ended before it listened:\n" + "".join(said))


def _make_container(port: int) -> None:
    """obstore makes none, so this is the one request that is signed here."""
    path, date, api = f"/{ACCOUNT}/container", formatdate(usegmt=True), "2021-12-02"
    signed = f"PUT{12 * chr(10)}x-ms-date:{date}\nx-ms-version:{api}\n/{ACCOUNT}{path}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)).decode()
    headers = {"x-ms-date": date, "x-ms-version": api, "Authorization": f"SharedKey {ACCOUNT}:{signature}"}
    with contextlib.closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("PUT", f"{path}?restype=container", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 201, answer.read()

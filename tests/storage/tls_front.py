"""A front before Azurite for Spark: it speaks TLS, and lists as the service does.

Hadoop's connector speaks TLS to every ``abfss://``. And where a folder has a marker of its own, the service lists the
two side by side, since it sorts all names; the connector relies on that. Azurite lists all folders, then all markers:
the connector takes each folder twice, and a job that writes two folders fails.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.storage import front
from tests.storage.front import Answer, Handler, Request, forwarding

PASSWORD = "changeit"  # not a secret: that of every truststore which Java itself brings

_LISTED = re.compile(rb"<BlobPrefix>.*?</BlobPrefix>|<Blob>.*?</Blob>", re.DOTALL)
_ALL = re.compile(rb"<Blobs>(.*)</Blobs>", re.DOTALL)
_NAME = re.compile(rb"<Name>(.*?)</Name>", re.DOTALL)


@dataclass(frozen=True)
class Front:
    """Its port, and a file by which a JVM trusts its certificate."""

    port: int
    truststore: Path


def why_absent() -> str:
    """Why no such front can be made here, or nothing where it can."""
    missing = [each for each in ("openssl", "keytool") if not shutil.which(each)]
    return f"TLS needs {missing[0]}, and there is none on PATH" if missing else ""


@contextlib.contextmanager
def before(port: int, folder: Path) -> Iterator[Front]:
    """A front before Azurite at this port; its certificate and truststore are made in the folder."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(folder))
    with front.serving(_sorting(forwarding(port)), context) as listening:
        yield Front(listening.server_port, _truststore(folder))


def _sorting(inner: Handler) -> Handler:
    def handle(request: Request) -> Answer | None:
        answer = inner(request)
        if answer is None or "comp=list" not in request.target:
            return answer
        return replace(answer, body=_ALL.sub(_sorted, answer.body))

    return handle


def _sorted(found: re.Match[bytes]) -> bytes:
    """What a page lists, by names, a folder's slash left out: a marker is beside its folder."""
    entries = _LISTED.findall(found[1])
    return b"<Blobs>%s</Blobs>" % b"".join(sorted(entries, key=lambda each: _NAME.findall(each)[0].rstrip(b"/")))


def _certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    about = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    out = ["-keyout", str(key), "-out", str(certificate)]
    _run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *about, *out)
    return certificate, key


def _truststore(folder: Path) -> Path:
    store = folder / "truststore.p12"
    into = ["-keystore", str(store), "-storetype", "PKCS12", "-storepass", PASSWORD]
    _run("keytool", "-importcert", "-noprompt", "-alias", "front", "-file", str(folder / "certificate.pem"), *into)
    return store


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)

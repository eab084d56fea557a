"""A port for a server that has to be told one."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine that nobody listens at now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])

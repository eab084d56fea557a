"""What a bad network does to requests before a real server: lost and late replies, throttling, failures."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.storage.front import Answer, Handler, Request

_BUSY = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass
class Chances:
    """Says by chance which requests have a fault; ``met`` counts each kind.

    Args:
        shares: of 1,000 requests how many have each fault.
    """

    seed: int
    shares: Mapping[str, int]
    met: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def fault(self) -> str:
        """That of the next request, or nothing."""
        with self.lock:
            drawn = self.chance.randrange(1000)
            for fault, share in self.shares.items():
                drawn -= share
                if drawn < 0:
                    self.met[fault] = self.met.get(fault, 0) + 1
                    return fault
        return ""


@dataclass
class Faulty:
    """Hands requests on, some of them with a fault.

    A *lost* request never reaches the server; of one whose *reply* is lost it was carried out; a *late* one is carried
    out after the client has stopped to wait; *busy* and *failed* are the answers 503 and 500, and nothing was done.

    Args:
        late_s: for how long a late one is held.
    """

    inner: Handler
    chances: Chances
    late_s: float

    def __call__(self, request: Request) -> Answer | None:
        match self.chances.fault():
            case "lost":
                return None
            case "reply":
                self.inner(request)
                return None
            case "late":
                time.sleep(self.late_s)
                self.inner(request)
                return None
            case "busy":
                return Answer(503, (("content-type", "application/xml"),), _BUSY)
            case "failed":
                return Answer(500)
        return self.inner(request)

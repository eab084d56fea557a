"""Several writers on each store, over a network that loses, delays and refuses: nothing is lost, and nothing twice."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

import anabranch
from anabranch.errors import CommitOutcomeUnknown
from tests.clouds.running import required
from tests.storage import azurite, fake_gcs, front, mini_hdfs, minio_s3, moto_s3, rpc_front
from tests.storage.faulty import Chances, Faulty
from tests.support.patience import PATIENCE
from tests.support.tiers import examples
from tests.support.worlds import World

pytestmark = pytest.mark.clouds

WRITERS, COMMITS = 4, examples(15, 4)
WORSE = examples(1, 5)
"""How many times as many requests have a fault: where there are fewer commits, more of them have."""
NETWORKS = {
    "one request in a hundred fails": {"failed": 5, "lost": 5},
    "replies are lost": {"reply": 60},
    "replies come too late": {"late": 20},
    "throttling": {"busy": 100},
}
LIMIT_S, LATE_S = 6, 8
"""How long a client waits where replies come too late, and when those come. A request that is late only because the
machine is busy has the same two ends that a late one has.
"""
Options = dict[str, str]


class Served(NamedTuple):
    """A store that is there: where tables lie on it, and the options by which it is reached."""

    root: str
    options: Options


Worse = Callable[[Served, Chances], AbstractContextManager[Served]]
"""Reaches a store through a bad network."""
Server = Callable[[Path], AbstractContextManager[Served]]
fresh = itertools.count()


def bucket(root: str, server: Callable[[Path], AbstractContextManager[Options]]) -> Server:
    @contextmanager
    def serving(folder: Path) -> Iterator[Served]:
        with server(folder) as options:
            yield Served(root, options)

    return serving


@contextmanager
def hdfs(folder: Path) -> Iterator[Served]:
    with mini_hdfs.serving(folder) as url:
        yield Served(url, {})


@contextmanager
def webhdfs(folder: Path) -> Iterator[Served]:
    with mini_hdfs.serving_both(folder) as urls:
        yield Served(urls.webhdfs, {})


def limit_of(chances: Chances) -> int:
    """How many seconds a client waits."""
    return LIMIT_S if "late" in chances.shares else PATIENCE


def over_http(key: str) -> Worse:
    """By an HTTP front before the server that this option names."""

    @contextmanager
    def reached(served: Served, chances: Chances) -> Iterator[Served]:
        told = served.options[key]
        port = port_of(json.loads(told)["gcs_base_url"] if told.startswith("{") else told)
        with front.serving(Faulty(front.forwarding(port), chances, LATE_S)) as bad:
            options = {
                each: value.replace(f"http://127.0.0.1:{port}", bad.url) for each, value in served.options.items()
            }
            yield Served(served.root, options | {f"{key.partition('_')[0]}_TIMEOUT": f"{limit_of(chances)}s"})

    return reached


@contextmanager
def before_the_name_node(served: Served, chances: Chances) -> Iterator[Served]:
    """By an HTTP front before the NameNode; what it hands to a DataNode goes there by the honest network."""
    with front.serving(Faulty(front.forwarding(port_of(served.root)), chances, LATE_S)) as bad:
        yield Served(f"webhdfs://127.0.0.1:{bad.server_port}", {"timeout": str(limit_of(chances))})


@contextmanager
def over_rpc(served: Served, chances: Chances) -> Iterator[Served]:
    """By a front before the NameNode. Its clients have no time limit, so the sender of a late call is cut off."""
    with rpc_front.before(port_of(served.root), lambda _: chances.fault()) as port:
        yield Served(f"hdfs://127.0.0.1:{port}", {})


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


STORES: dict[str, tuple[Callable[[], str], Server, Worse]] = {
    "moto": (lambda: "", bucket("s3://bucket", lambda _: moto_s3.serving()), over_http("AWS_ENDPOINT")),
    "MinIO": (minio_s3.why_absent, bucket("s3://bucket", minio_s3.serving), over_http("AWS_ENDPOINT")),
    "Azurite": (
        azurite.why_absent,
        bucket("az://container", lambda _: azurite.serving()),
        over_http("AZURE_STORAGE_ENDPOINT"),
    ),
    "fake-gcs-server": (
        fake_gcs.why_absent,
        bucket("gs://bucket", lambda _: fake_gcs.serving()),
        over_http("GOOGLE_SERVICE_ACCOUNT_KEY"),
    ),
    "HDFS": (mini_hdfs.why_absent, hdfs, over_rpc),
    "WebHDFS": (mini_hdfs.why_absent, webhdfs, before_the_name_node),
}
"""Why there is none of a kind here, or nothing; how to have one; and how to reach it badly."""


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Worse]]:
    why_absent, server, worse = STORES[request.param]
    required(why_absent())
    with server(tmp_path_factory.mktemp("server")) as served:
        yield served, worse


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.slow
def test_each_acknowledged_append_is_in_the_table_once(store: tuple[Served, Worse], network: str) -> None:
    served, worse = store
    shares = {fault: WORSE * share for fault, share in NETWORKS[network].items()}
    table, chances = f"{network} {next(fresh)}", Chances(19, shares)
    place = f"{served.root}/{table}"
    anabranch.append(place, [{"id": -1}], storage_options=served.options)
    with worse(served, chances) as bad, ThreadPoolExecutor(WRITERS) as pool:
        told = list(pool.map(lambda writer: written(f"{bad.root}/{table}", writer, bad.options), range(WRITERS)))
    # each append takes three requests or more, and of the first 180, or 48 of a worse one, some have each fault
    assert set(chances.met) == set(shares), "the network was not as bad as it should have been"
    acknowledged = {row for acked, _ in told for row in acked}
    unknown = {row for _, doubtful in told for row in doubtful}
    assert (
        len(acknowledged) + len(unknown) == WRITERS * COMMITS
    )  # each ended in one way or the other, with no other error
    there = rows_at(place, served.options)
    assert max(there.values()) == 1
    assert acknowledged <= set(there) <= acknowledged | unknown | {-1}
    assert anabranch.check(place, deep=True, storage_options=served.options).is_clean


def written(place: str, writer: int, options: Options) -> tuple[set[int], set[int]]:
    """The rows that one writer was told to have committed, and those of which it could not be told."""
    acknowledged, unknown = set(), set()
    for row in range(writer * COMMITS, (writer + 1) * COMMITS):
        try:
            anabranch.append(place, [{"id": row}], storage_options=options)
            acknowledged.add(row)
        except CommitOutcomeUnknown:
            unknown.add(row)
    return acknowledged, unknown


def rows_at(place: str, options: Options) -> Counter[int]:
    """How often each row is in the table, by the honest network."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in options.items():
            patch.setenv(key, value)
        return Counter(row["id"] for row in World(place).rows())

"""Several writers on each store, over a network that loses, delays and refuses: nothing is lost, and nothing twice."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import anabranch
from anabranch.errors import CommitOutcomeUnknown
from tests.clouds.running import required
from tests.storage import azurite, fake_gcs, front, minio_s3, moto_s3
from tests.storage.faulty import Faulty
from tests.support.worlds import World

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(300)]

WRITERS, COMMITS = 4, 15
NETWORKS = {
    "one request in a hundred fails": {"failed": 5, "lost": 5},
    "replies are lost": {"reply": 60},
    "replies come too late": {"late": 20},
    "throttling": {"busy": 100},
}
Options = dict[str, str]
Server = Callable[[Path], AbstractContextManager[Options]]
STORES: dict[str, tuple[str, str, Callable[[], str], Server]] = {
    "moto": ("s3://bucket", "AWS_ENDPOINT", lambda: "", lambda _: moto_s3.serving()),
    "MinIO": ("s3://bucket", "AWS_ENDPOINT", minio_s3.why_absent, minio_s3.serving),
    "Azurite": ("az://container", "AZURE_STORAGE_ENDPOINT", azurite.why_absent, lambda _: azurite.serving()),
    "fake-gcs-server": (
        "gs://bucket",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        fake_gcs.why_absent,
        lambda _: fake_gcs.serving(),
    ),
}
fresh = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Options]]:
    name: str = request.param
    _, _, why_absent, server = STORES[name]
    required(why_absent())
    with server(tmp_path_factory.mktemp("server")) as options:
        yield name, options


@pytest.mark.parametrize("network", NETWORKS)
def test_each_acknowledged_append_is_in_the_table_once(served: tuple[str, Options], network: str) -> None:
    name, options = served
    place = f"{STORES[name][0]}/{network} {next(fresh)}"
    anabranch.append(None, place, [{"id": -1}], storage_options=options)
    with faulty(name, options, NETWORKS[network]) as (worse, faults), ThreadPoolExecutor(WRITERS) as pool:
        told = list(pool.map(lambda writer: written(place, writer, worse), range(WRITERS)))
    assert set(faults.met) == set(NETWORKS[network]), "the network was not as bad as it should have been"
    acknowledged = {row for acked, _ in told for row in acked}
    unknown = {row for _, doubtful in told for row in doubtful}
    assert (
        len(acknowledged) + len(unknown) == WRITERS * COMMITS
    )  # each ended in one way or the other, with no other error
    there = rows_at(place, options)
    assert max(there.values()) == 1
    assert acknowledged <= set(there) <= acknowledged | unknown | {-1}
    assert anabranch.check(place, deep=True, storage_options=options).is_clean


def written(place: str, writer: int, options: Options) -> tuple[set[int], set[int]]:
    """The rows that one writer was told to have committed, and those of which it could not be told."""
    acknowledged, unknown = set(), set()
    for row in range(writer * COMMITS, (writer + 1) * COMMITS):
        try:
            anabranch.append(None, place, [{"id": row}], storage_options=options)
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


@contextmanager
def faulty(name: str, options: Options, shares: Mapping[str, int]) -> Iterator[tuple[Options, Faulty]]:
    """The options by which a store is reached through a bad network, and the network."""
    key = STORES[name][1]
    url = json.loads(options[key])["gcs_base_url"] if name == "fake-gcs-server" else options[key]
    port = urlsplit(url).port
    assert port is not None
    prefix = key.partition("_")[0]
    network = Faulty(front.forwarding(port), 19, dict(shares), late_s=3)
    with front.serving(network) as bad:
        worse = {each: value.replace(f"http://127.0.0.1:{port}", bad.url) for each, value in options.items()}
        yield worse | {f"{prefix}_TIMEOUT": "2s"}, network

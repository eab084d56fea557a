"""What the verbs cost on S3, in requests and bytes, is no more than what they cost deltalake on an equal table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clouds.running import required
from tests.storage import minio_s3
from tests.support.requests_counted import OURS, Cost, cost, made

pytestmark = pytest.mark.clouds


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    required(minio_s3.why_absent())
    with minio_s3.serving(tmp_path_factory.mktemp("minio")) as options:
        yield options


@pytest.fixture(scope="module", params=[5, 15], ids=["5 commits", "15 commits and a checkpoint"])
def costs(s3: dict[str, str], request: pytest.FixtureRequest) -> dict[str, tuple[Cost, Cost]]:
    """Of each verb: ours, and deltalake's; each on a table of its own, and the figures are printed."""
    found = {}
    for verb in OURS:
        both = []
        for side in ("ours", "deltalake"):
            place = f"s3://bucket/{request.param}/{verb}/{side}"
            made(place, s3, request.param)
            both.append(cost(side, verb, place, s3))
        found[verb] = (both[0], both[1])
    print(f"\n| verb, after {request.param} commits | ours: requests, bytes | deltalake |\n|---|---|---|")
    for verb, (ours, theirs) in found.items():
        print(f"| {verb} | {len(ours.requests)}, {ours.moved:,} | {len(theirs.requests)}, {theirs.moved:,} |")
    return found


@pytest.mark.parametrize("verb", OURS)
def test_a_verb_costs_no_more_requests_than_deltalake(costs: dict[str, tuple[Cost, Cost]], verb: str) -> None:
    ours, theirs = costs[verb]
    assert 0 < len(ours.requests) <= len(theirs.requests), "\n".join((*ours.requests, "deltalake:", *theirs.requests))

"""What keys may do, as moto's policies have it: which rights a verb needs, and what is said where one is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import pytest
from moto import settings
from moto.core.responses import ActionAuthenticatorMixin
from moto.iam.models import iam_backends

import anabranch
from anabranch._cli.store_probe import put_checks
from anabranch._log.log import forget
from anabranch._storage import open_store
from anabranch.errors import StorePermissionDenied
from tests.storage import moto_s3
from tests.test_docs import rows_of_table
from tests.test_storeys import ROOT

pytestmark = pytest.mark.clouds

TABLE = "s3://bucket/rights/events"
UNNAMED = "unnamed.parquet"
RIGHTS = ("ListBucket", "GetObject", "PutObject", "DeleteObject")
Options = dict[str, str]
Keys = Callable[..., Options]
PAGE = ROOT / "docs" / "concepts" / "stores.md"


def history(options: Options) -> None:
    assert anabranch.history(TABLE, storage_options=options)


def check(options: Options) -> None:
    assert anabranch.check(TABLE, deep=True, storage_options=options).is_clean


def append(options: Options) -> None:
    anabranch.append(TABLE, [{"id": 2}], storage_options=options)


def vacuum(options: Options) -> None:
    done = anabranch.vacuum(TABLE, 0, check_retention=False, storage_options=options)
    assert [entry.name for entry in done.files] == [UNNAMED], done.failed


NEEDED = {history: RIGHTS[:2], check: RIGHTS[:2], append: RIGHTS[:3], vacuum: RIGHTS}


@pytest.fixture
def keys() -> Iterator[Keys]:
    """Makes the options of a user who may do what is named, in a bucket with a table and a file that nothing names."""
    iam = iam_backends["123456789012"]["aws"]
    forget()
    with moto_s3.serving() as environment, pytest.MonkeyPatch.context() as patch:
        anabranch.append(TABLE, [{"id": 1}], storage_options=environment)
        open_store(TABLE, environment).put(UNNAMED, b"x")

        def made(rights: Sequence[str], policy: str | None = None) -> Options:
            name = f"user{len(iam.users)}"
            iam.create_user("us-east-1", name)
            statement = {"Effect": "Allow", "Action": [f"s3:{each}" for each in rights], "Resource": "*"}
            every = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            iam.put_user_policy(name, "rights", policy or every)
            key = iam.create_access_key(name)
            patch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
            patch.setattr(ActionAuthenticatorMixin, "request_count", 0)
            forget()
            own = {"AWS_ACCESS_KEY_ID": key.access_key_id, "AWS_SECRET_ACCESS_KEY": key.secret_access_key}
            return {**environment, **own}

        yield made
    forget()


@pytest.mark.parametrize("verb", NEEDED, ids=lambda verb: verb.__name__)
def test_each_verb_works_with_its_rights_and_names_one_that_is_missing(
    keys: Keys, verb: Callable[[Options], None]
) -> None:
    for missing in set(NEEDED[verb]) - {"DeleteObject"}:
        with pytest.raises(StorePermissionDenied, match=f"AccessDenied.*s3:{missing}"):
            verb(keys([each for each in NEEDED[verb] if each != missing]))
    verb(keys(NEEDED[verb]))


def test_the_rights_are_those_of_the_page() -> None:
    said = rows_of_table(PAGE, "verb")
    stated = {cells[0]: cells[1:] for cells in said}
    for verb, title in ((history, "history, check"), (append, "append without Spark"), (vacuum, "VACUUM")):
        assert [cell.startswith("yes") for cell in stated[title]] == [right in NEEDED[verb] for right in RIGHTS]


def test_the_policy_of_the_page_suffices_below_the_table(keys: Keys) -> None:
    """But for deletes, which moto judges by the bucket, and S3 by each object."""
    text = PAGE.read_text(encoding="utf-8").partition("```json\n")[2].partition("```")[0]
    options = keys((), text.replace(":::lake/events/", ":::bucket/rights/events/").replace(':::lake"', ':::bucket"'))
    for verb in (history, check, append):
        verb(options)
    with pytest.raises(StorePermissionDenied, match="s3:PutObject"):
        open_store("s3://bucket/rights/other", options).put("name", b"x")


def test_keys_that_may_not_delete_are_told_of(keys: Keys) -> None:
    options = keys(RIGHTS[:3])
    with pytest.raises(StorePermissionDenied, match="s3:DeleteObject"):
        open_store(TABLE, options).delete(UNNAMED)
    (reason,) = anabranch.vacuum(TABLE, 0, check_retention=False, storage_options=options).failed.values()
    assert "s3:DeleteObject" in reason
    states = {each.name: each.state for each in put_checks(open_store(TABLE, options), "_anabranch_doctor_x/name")}
    assert (states["put-if-absent"], states["deleting"]) == ("ok", "failed")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "x"}, "the secret does not belong to the key"),
        ({"AWS_ACCESS_KEY_ID": "AKIAX"}, "the service does not know this key"),
    ],
)
def test_a_wrong_key_or_secret_is_one_sentence(keys: Keys, wrong: Options, said: str) -> None:
    options = {**keys(RIGHTS), **wrong}
    for verb in (history, append):
        with pytest.raises(StorePermissionDenied, match=said) as refused:
            verb(options)
        assert "<" not in str(refused.value)

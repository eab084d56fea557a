"""Which settings both sides can follow, and options of obstore as settings of Spark's connector."""

from __future__ import annotations

import pytest

from anabranch._storage.hadoop_names import find_missing_setting, for_spark, unsupported_settings
from anabranch._storage.hadoop_settings import translate_settings

HOST = "account.dfs.core.windows.net"
KEYS = {"fs.s3a.access.key": "KEY", "fs.s3a.secret.key": "SECRET"}


@pytest.mark.parametrize(
    "name",
    [
        "fs.s3a.endpoint",
        "fs.s3a.bucket.lake.endpoint",
        "fs.s3a.connection.maximum",
        "fs.s3a.bucket.lake.threads.max",
        "fs.s3a.impl.disable.cache",
        "fs.s3a.bucket.pond.encryption.algorithm",
        "fs.azure.account.key",
        "dfs.replication",
    ],
)
def test_what_both_can_follow_or_speaks_of_others_is_honoured(name: str) -> None:
    assert unsupported_settings("s3", "lake", {name: "x"}, {name: "x"}) == []


@pytest.mark.parametrize(
    ("scheme", "authority", "name"),
    [
        ("s3", "lake", "fs.s3a.encryption.algorithm"),
        ("s3", "lake", "fs.s3a.bucket.lake.encryption.key"),
        ("s3", "lake", "fs.s3a.assumed.role.arn"),
        ("s3", "lake", "fs.s3a.acl.default"),
        ("s3", "lake", "fs.s3a.aws.credentials.provider"),
        ("abfss", f"c@{HOST}", f"fs.azure.account.auth.type.{HOST}"),
        ("abfss", f"c@{HOST}", f"fs.azure.encryption.context.provider.type.{HOST}"),
        ("gs", "lake", "fs.gs.encryption.key"),
        ("hdfs", "ns", "dfs.replication"),
    ],
)
def test_what_our_client_cannot_follow_is_named(scheme: str, authority: str, name: str) -> None:
    assert unsupported_settings(scheme, authority, {name: "Own"}, {name: "Own"}) == [name]


def test_a_provider_of_keys_is_honoured_where_there_are_keys() -> None:
    name = "fs.s3a.aws.credentials.provider"
    given = {name: "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"}
    assert unsupported_settings("s3", "lake", given, {**KEYS, **given}) == []
    assert unsupported_settings("s3", "lake", given, given) == [name]


def test_a_key_without_its_secret_is_named() -> None:
    assert find_missing_setting("s3", "lake", {"fs.s3a.access.key": "k"}) == "fs.s3a.secret.key"
    assert find_missing_setting("s3", "lake", {"fs.s3a.bucket.lake.secret.key": "s"}) == "fs.s3a.bucket.lake.access.key"
    assert find_missing_setting("s3", "lake", {"fs.s3a.session.token": "t"}) == "fs.s3a.access.key"
    assert (
        find_missing_setting("s3", "lake", KEYS)
        is find_missing_setting("s3", "lake", {})
        is find_missing_setting("gs", "b", {"x": "y"})
        is None
    )


@pytest.mark.parametrize(
    ("scheme", "authority", "options"),
    [
        ("s3", "lake", {"access_key_id": "K", "secret_access_key": "S", "session_token": "T", "region": "eu-west-1"}),
        ("s3", "lake", {"access_key_id": "K", "secret_access_key": "S"}),
        ("s3", "lake", {"skip_signature": "true"}),
        ("abfss", f"c@{HOST}", {"account_key": "K"}),
        ("abfss", f"c@{HOST}", {"sas_key": "sv=1"}),
        ("gs", "lake", {"service_account": "/key.json"}),
        ("gs", "lake", {"base_url": "http://h", "allow_http": "true"}),
    ],
)
def test_options_come_back_from_the_settings_that_spark_gets(
    scheme: str, authority: str, options: dict[str, str]
) -> None:
    told, untold = for_spark(scheme, authority, options)
    assert untold == []
    assert translate_settings(scheme, authority, told) == options
    assert unsupported_settings(scheme, authority, told, told) == []


def test_an_endpoint_is_one_for_both() -> None:
    options = {"AWS_ENDPOINT": "http://h:9000", "AWS_ALLOW_HTTP": "true"}
    told, untold = for_spark("s3", "lake", options)
    assert (told["fs.s3a.bucket.lake.endpoint"], told["fs.s3a.bucket.lake.path.style.access"], untold) == (
        "http://h:9000",
        "true",
        [],
    )
    assert translate_settings("s3", "lake", told)["endpoint"] == "http://h:9000"


def test_options_that_the_connector_cannot_be_told_are_named_as_they_were_given() -> None:
    assert for_spark("s3", "lake", {"AWS_ROLE_ARN": "r", "timeout": "60s", "proxy_url": "p"})[1] == [
        "AWS_ROLE_ARN",
        "proxy_url",
    ]
    virtual = {"virtual_hosted_style_request": "true", "endpoint": "https://lake.h"}
    assert for_spark("s3", "lake", virtual)[1] == ["virtual_hosted_style_request", "endpoint"]
    assert for_spark("abfss", f"c@{HOST}", {"account_name": "other"})[1] == ["account_name"]
    assert for_spark("abfss", f"c@{HOST}", {"account_name": "account"})[1] == []

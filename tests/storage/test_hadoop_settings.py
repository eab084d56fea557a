"""What Hadoop's settings say of a bucket, as options of obstore."""

from __future__ import annotations

import pytest

from anabranch._storage.hadoop_settings import translate_settings

HOST = "account.dfs.core.windows.net"
KEYS = {"fs.s3a.access.key": "KEY", "fs.s3a.secret.key": "SECRET"}
KEYS_OF_OBSTORE = {"access_key_id": "KEY", "secret_access_key": "SECRET"}
HADOOP = "org.apache.hadoop.fs.s3a"


def s3(settings: dict[str, str], bucket: str = "lake") -> dict[str, str]:
    return translate_settings("s3", bucket, {f"fs.s3a.{name}": value for name, value in settings.items()})


def azure(settings: dict[str, str]) -> dict[str, str]:
    return translate_settings("abfss", f"c@{HOST}", {f"fs.azure.{name}": value for name, value in settings.items()})


def test_keys_and_a_token_are_one_answer() -> None:
    assert translate_settings("s3", "lake", KEYS) == KEYS_OF_OBSTORE
    assert translate_settings("s3", "lake", {**KEYS, "fs.s3a.session.token": "T"}) == {
        **KEYS_OF_OBSTORE,
        "session_token": "T",
    }


@pytest.mark.parametrize("alone", ["access.key", "secret.key", "session.token"])
def test_a_half_of_an_answer_is_none(alone: str) -> None:
    assert s3({alone: "x"}) == {}


def test_a_bucket_of_its_own_keys_takes_nothing_of_the_keys_of_all() -> None:
    own = {"bucket.lake.access.key": "own", "bucket.lake.secret.key": "owns"}
    every = {"access.key": "every", "secret.key": "everys", "session.token": "token of every"}
    assert s3({**own, **every}) == {"access_key_id": "own", "secret_access_key": "owns"}
    assert s3({**own, **every}, "pond")["access_key_id"] == "every"
    assert s3({"bucket.lake.access.key": "own", **every}) == {}, "never a key of one with the secret of another"


@pytest.mark.parametrize(
    ("provider", "found"),
    [
        (f"{HADOOP}.AnonymousAWSCredentialsProvider", {"skip_signature": "true"}),
        (f"{HADOOP}.SimpleAWSCredentialsProvider", KEYS_OF_OBSTORE),
        (f"{HADOOP}.TemporaryAWSCredentialsProvider , {HADOOP}.SimpleAWSCredentialsProvider", KEYS_OF_OBSTORE),
        (f"{HADOOP}.auth.IAMInstanceCredentialsProvider", {}),
    ],
)
def test_keys_count_where_the_connector_looks_at_them(provider: str, found: dict[str, str]) -> None:
    assert translate_settings("s3", "lake", {**KEYS, "fs.s3a.aws.credentials.provider": provider}) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"endpoint": "http://h:9000", "path.style.access": "true"}, ("http://h:9000", "false", "true")),
        ({"endpoint": "h:9000", "connection.ssl.enabled": "false"}, ("http://h:9000", "false", "true")),
        ({"endpoint": "h:9000"}, ("https://h:9000", "false", None)),
        ({"endpoint": "127.0.0.1:9000"}, ("https://127.0.0.1:9000", "false", None)),
        ({"endpoint": "s3.example.com"}, ("https://lake.s3.example.com", "true", None)),
        ({"endpoint": "s3.example.com", "path.style.access": "true"}, ("https://s3.example.com", "false", None)),
        ({"endpoint": "s3.cn-north-1.amazonaws.com.cn"}, ("https://lake.s3.cn-north-1.amazonaws.com.cn", "true", None)),
        ({"endpoint": "a", "bucket.lake.endpoint": "b"}, ("https://b", "false", None)),
    ],
)
def test_a_server_is_asked_as_the_connector_asks_it(said: dict[str, str], found: tuple[str, str, str | None]) -> None:
    options = s3(said)
    assert (options["endpoint"], options["virtual_hosted_style_request"], options.get("allow_http")) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"endpoint": "s3.amazonaws.com"}, {}),
        ({"endpoint": "https://s3.eu-west-1.amazonaws.com"}, {"region": "eu-west-1"}),
        ({"endpoint": "s3.eu-west-1.amazonaws.com", "endpoint.region": "eu-north-1"}, {"region": "eu-north-1"}),
        ({"bucket.lake.endpoint.region": "a", "endpoint.region": "b"}, {"region": "a"}),
    ],
)
def test_amazons_own_servers_are_said_by_their_region(said: dict[str, str], found: dict[str, str]) -> None:
    assert s3(said) == found


def test_the_settings_of_an_account_count_before_those_of_all() -> None:
    assert azure({f"account.key.{HOST}": "own", "account.key": "every"}) == {"account_key": "own"}
    assert azure({"account.key.other.dfs.core.windows.net": "other"}) == {}
    sas = {f"account.auth.type.{HOST}": "SAS", f"sas.fixed.token.c.{HOST}": "?sv=1&sig=x", "account.key": "k"}
    assert azure(sas) == {"sas_key": "sv=1&sig=x"}


def test_a_principal_of_azure_is_one_answer() -> None:
    provider = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
    client = {"id": "i", "secret": "s", "endpoint": "https://login.microsoftonline.com/tenant/oauth2/token"}
    said = {"account.auth.type": "OAuth", "account.oauth.provider.type": provider}
    said |= {f"account.oauth2.client.{name}.{HOST}": value for name, value in client.items()}
    assert azure(said) == {"client_id": "i", "client_secret": "s", "tenant_id": "tenant"}
    elsewhere = {**said, f"account.oauth2.client.endpoint.{HOST}": "https://login.chinacloudapi.cn/tenant/oauth2/token"}
    assert azure(elsewhere)["authority_host"] == "https://login.chinacloudapi.cn"
    for name in client:
        assert azure({key: value for key, value in said.items() if f".{name}." not in key}) == {}
    assert azure({**said, "account.oauth.provider.type": "com.example.Own"}) == {}


def test_google_is_reached_by_a_file_or_by_nobody() -> None:
    for name in ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile"):
        assert translate_settings("gs", "b", {name: "/key.json"}) == {"service_account": "/key.json"}
    assert translate_settings("gs", "b", {"fs.gs.auth.type": "UNAUTHENTICATED"}) == {"skip_signature": "true"}
    assert translate_settings("gs", "b", {"fs.gs.auth.null.enable": "true"}) == {"skip_signature": "true"}
    assert translate_settings("gs", "b", {"fs.gs.storage.root.url": "http://h:1/"}) == {
        "base_url": "http://h:1",
        "allow_http": "true",
    }
    emulator = translate_settings(
        "gs", "b", {"fs.gs.storage.root.url": "http://h:1", "fs.gs.auth.type": "UNAUTHENTICATED"}
    )
    assert '"disable_oauth": true' in emulator["service_account_key"], "obstore writes nothing without an account"
    machine = {"fs.gs.auth.type": "COMPUTE_ENGINE", "fs.gs.auth.service.account.json.keyfile": "/key.json"}
    assert translate_settings("gs", "b", machine) == {}


def test_hdfs_is_told_its_nameservices_only() -> None:
    said = {"dfs.nameservices": "a", "dfs.ha.namenodes.a": "x", "dfs.replication": "1", "fs.s3a.access.key": "k"}
    assert translate_settings("hdfs", "a", said) == {"dfs.nameservices": "a", "dfs.ha.namenodes.a": "x"}

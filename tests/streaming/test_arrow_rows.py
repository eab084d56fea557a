"""Rows of files in an Azure container, as tasks read them: Arrow's client has to be told where and who."""

from __future__ import annotations

import io
import os

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from anabranch._streaming import arrow_rows
from tests.storage import azurite

ABFSS = f"abfss://container@{azurite.ACCOUNT}.dfs.core.windows.net"
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.mark.skipif(bool(azurite.why_absent()), reason=azurite.why_absent())
@pytest.mark.slow
def test_the_rows_of_a_file_in_a_container_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with azurite.serving() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        buffer = io.BytesIO()
        pq.write_table(ROWS, buffer)
        system, container = arrow_rows.bucket_of(ABFSS)
        with system.open_output_stream(f"{container}/50% é.parquet") as file:
            file.write(buffer.getvalue())
        where = {"store": ABFSS, "name": "50% é.parquet", "path": "50% é.parquet", "table": "t", "version": 0}
        which = {"size": 0, "constants": {}, "mask": None, "beyond": True, "share": (0, 1)}
        task = {"wanted": ROWS.schema, "physical": ROWS.schema, "files": [{**where, **which}]}
        assert pa.Table.from_batches(arrow_rows.read_rows(task)) == ROWS
        task["files"] = [{**where, **which, "name": "gone"}]
        with pytest.raises(FileNotFoundError, match=r"DELTA_DATA_FILE_MISSING.*50%"):
            list(arrow_rows.read_rows(task))


@pytest.mark.parametrize(
    ("endpoint", "blob", "data_lake", "scheme"),
    [
        ("https://a.blob.core.windows.net", ".blob.core.windows.net", ".dfs.core.windows.net", "https"),
        ("https://a.blob.core.chinacloudapi.cn/", ".blob.core.chinacloudapi.cn", ".dfs.core.chinacloudapi.cn", "https"),
        ("http://127.0.0.1:10000/a", "127.0.0.1:10000", "127.0.0.1:10000", "http"),
    ],
)
def test_an_endpoint_names_its_account_in_its_host_or_in_its_path(
    endpoint: str, blob: str, data_lake: str, scheme: str
) -> None:
    told = arrow_rows.azure_server("a", endpoint)
    assert told == {
        "blob_storage_authority": blob,
        "dfs_storage_authority": data_lake,
        "blob_storage_scheme": scheme,
        "dfs_storage_scheme": scheme,
    }
    assert pafs.AzureFileSystem("a", account_key="a2V5", **told)


@pytest.mark.parametrize(
    "said",
    [
        {"AZURE_STORAGE_ACCESS_KEY": "a2V5"},
        {"AZURE_STORAGE_SAS_TOKEN": "sv=2&sig=x"},
        {"AZURE_CLIENT_ID": "i", "AZURE_CLIENT_SECRET": "s", "AZURE_STORAGE_TENANT_ID": "t"},
    ],
)
def test_every_kind_of_credentials_is_handed_on(monkeypatch: pytest.MonkeyPatch, said: dict[str, str]) -> None:
    handed = {}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(pafs, "AzureFileSystem", lambda account, **named: handed.update(named))
    arrow_rows.bucket_of(ABFSS)
    assert {value.removeprefix("?") for value in handed.values()} == set(said.values())


def test_what_the_session_says_of_a_bucket_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    handed: list[dict[str, object]] = []
    monkeypatch.setattr(pafs, "S3FileSystem", lambda **named: handed.append(named))
    said = {"access_key_id": "k", "secret_access_key": "s", "region": "r", "endpoint": "http://h:1"}
    assert arrow_rows.bucket_of("s3://lake", said)[1] == "lake"
    keys = {"access_key": "k", "secret_key": "s", "session_token": None}
    server = {"endpoint_override": "h:1", "scheme": "http", "region": "r", "anonymous": False}
    assert handed.pop() == {**keys, **server}
    arrow_rows.bucket_of("s3://lake", {"skip_signature": "true"})
    assert handed.pop() == {"anonymous": True, "region": None}
    virtual = {"endpoint": "https://lake.h.example", "virtual_hosted_style_request": "true"}
    arrow_rows.bucket_of("s3://lake", virtual)
    assert handed[-1]["endpoint_override"] == "h.example"
    assert handed.pop()["force_virtual_addressing"] is True


def test_credentials_of_an_executors_environment_count_before_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[dict[str, object]] = []
    monkeypatch.setattr(pafs, "S3FileSystem", lambda **named: handed.append(named))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment's")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    arrow_rows.bucket_of("s3://lake", {"access_key_id": "k", "secret_access_key": "s", "region": "r"})
    assert handed == [{"region": "eu-north-1", "anonymous": False}]

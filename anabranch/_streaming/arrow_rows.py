"""Reads the rows of data files on executors, as Arrow batches.

Imports pyarrow only: this module travels to executors by value, where nothing of ours is installed. What to read is
given as plain values (`anabranch._streaming.tasks`). Guarantee: a column that cannot be read as what it must be ends
the task; no value is cut or guessed.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

BATCH_ROWS = 1 << 16
_NOTHING: Mapping[str, str] = {}
GOOGLE_PATIENCE = timedelta(minutes=1)
_AZURE_KEYS = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
_AZURE_TOKENS = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
_CREDENTIALS = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    "abfss": (*_AZURE_KEYS, *_AZURE_TOKENS, "AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SKIP_SIGNATURE"),
}
"""The variables that say who asks, by the scheme of a bucket."""


def rows_of(task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a task: those of its files, one after the other.

    Args:
        task: ``wanted`` and ``physical`` are the columns with their names in the table and in files, as Arrow schemas;
            ``files`` says of each file where it is and which rows are shown.
    """
    for file in task["files"]:
        yield from _rows_of_file(file, task["wanted"], file.get("physical") or task["physical"])


def _rows_of_file(file: Mapping[str, Any], wanted: pa.Schema, physical: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _open_file(file) as source:
        parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        there = {name.lower(): name for name in reversed(parquet.schema_arrow.names)}
        constants: Mapping[str, Any] = file["constants"]
        read = [_name_in_file(there, name) for name in physical.names if name not in constants]
        names = [name for name in read if name is not None]
        mask = _mask(file)
        if mask is not None and len(mask) > parquet.metadata.num_rows:
            raise ValueError(
                f"[DELTA_DELETION_VECTOR_CORRUPT] {_describe_file(file)}, which has fewer rows than its vector says."
            )
        for group, first, count in _groups(parquet.metadata, file["share"]):
            if mask is not None and not _part(mask, file, first, count).true_count:
                continue
            for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=names, use_threads=False):
                shown = _fit_batch(batch, wanted, physical, there, constants)
                if mask is not None:
                    shown = shown.filter(_part(mask, file, first, batch.num_rows))
                first += batch.num_rows
                if shown.num_rows:
                    yield shown


def _open_file(file: Mapping[str, Any]) -> Any:
    """The file. Raises FileNotFoundError, ValueError: it is gone, or is not the one that the log names."""
    try:
        if file["store"] is None:
            if not stat.S_ISREG(os.stat(file["name"]).st_mode):
                raise FileNotFoundError  # a pipe would wait for a writer, a device may have no end
            source = pa.OSFile(file["name"], "rb")
        else:
            system, bucket = bucket_of(file["store"], file.get("said") or {})
            source = system.open_input_file(f"{bucket}/{file['name']}")
    except FileNotFoundError:
        reason = (
            "is no file, or missing: a VACUUM may have removed it, since the stream is behind the table's retention."
        )
        raise FileNotFoundError(f"[DELTA_DATA_FILE_MISSING] {_describe_file(file)}, which {reason}") from None
    size = source.size()
    if file["size"] and size != file["size"]:
        source.close()
        raise ValueError(
            f"[DELTA_DATA_FILE_MISSING] {_describe_file(file)}, which has {size} bytes, not {file['size']}."
        )
    return source


def bucket_of(store: str, said: Mapping[str, str] = _NOTHING) -> tuple[Any, str]:
    """Where Arrow finds a bucket, and its name there. Of S3, Arrow asks the environment for keys only.

    Args:
        said: what the session says of it; not used where the environment here has credentials.
    """
    if any(map(os.environ.get, _CREDENTIALS[store.partition(":")[0]])):
        said = {}
    if store.startswith("gs://"):
        return _google(said), store.removeprefix("gs://")
    if store.startswith("abfss://"):
        container, _, host = store.removeprefix("abfss://").partition("@")
        return _azure(container, host, said)
    return _s3(store.removeprefix("s3://"), said)


def _s3(bucket: str, said: Mapping[str, str]) -> tuple[Any, str]:
    endpoint = said.get("endpoint") or _from_environment("AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    region = said.get("region") or _from_environment("AWS_REGION", "AWS_DEFAULT_REGION")
    if not (said or endpoint or region):
        found: tuple[Any, str] = pafs.FileSystem.from_uri(f"s3://{bucket}")
        return found
    scheme, _, server = endpoint.rpartition("://")
    known: dict[str, Any] = {"endpoint_override": server, "scheme": scheme or "https"} if server else {}
    if said.get("virtual_hosted_style_request") == "true":
        known |= {"endpoint_override": server.removeprefix(f"{bucket}."), "force_virtual_addressing": True}
    if said.get("access_key_id"):
        names = {"access_key": "access_key_id", "secret_key": "secret_access_key", "session_token": "session_token"}
        known |= {name: said.get(option) for name, option in names.items()}
    return pafs.S3FileSystem(region=region or None, anonymous="skip_signature" in said, **known), bucket


def _google(said: Mapping[str, str]) -> Any:
    """Arrow's client of Google Cloud. By default it asks 15 minutes long for credentials that are not there."""
    scheme, _, server = (said.get("base_url") or _from_environment("GOOGLE_BASE_URL")).rpartition("://")
    known: dict[str, Any] = {"endpoint_override": server, "scheme": scheme or "https"} if server else {}
    anonymous = "skip_signature" in said or _from_environment("GOOGLE_SKIP_SIGNATURE").lower() == "true"
    return pafs.GcsFileSystem(anonymous=anonymous, retry_time_limit=GOOGLE_PATIENCE, **known)


def _azure(container: str, host: str, said: Mapping[str, str]) -> tuple[Any, str]:
    """Arrow's client of an account. Where it finds no credentials it ends the process, so all that are said are handed
    to it; it finds an identity of the machine itself.
    """
    account = host.partition(".")[0]
    known: dict[str, Any] = azure_server(account, _from_environment("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"))
    principal = {
        name: said.get(name) or _from_environment(f"AZURE_STORAGE_{name.upper()}", f"AZURE_{name.upper()}")
        for name in ("client_id", "client_secret", "tenant_id")
    }
    if key := said.get("account_key") or _from_environment(*_AZURE_KEYS):
        known["account_key"] = key
    elif token := said.get("sas_key") or _from_environment(*_AZURE_TOKENS):
        known["sas_token"] = f"?{token.removeprefix('?')}"
    elif all(principal.values()):
        known |= principal
    return pafs.AzureFileSystem(account, **known), container


def azure_server(account: str, endpoint: str) -> dict[str, str]:
    """What Arrow's client is told of where an account's server is. One that is none of Azure's own names the account in
    its path, Azure's in its host.
    """
    scheme, _, rest = endpoint.rstrip("/").partition("://")
    server, _, path = rest.partition("/")
    if not server:
        return {}
    authority = server if path == account else f".{server.partition('.')[2]}"
    data_lake = authority.replace(".blob.", ".dfs.")
    schemes = dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), scheme)
    return {"blob_storage_authority": authority, "dfs_storage_authority": data_lake, **schemes}


def _from_environment(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _describe_file(file: Mapping[str, Any]) -> str:
    return f"Version {file['version']} of the table at {file['table']} needs the data file {file['path']}"


def _name_in_file(there: Mapping[str, str], name: str) -> str | None:
    """The name of a column in a file; None where the file does not have it."""
    return name if name in there.values() else there.get(name.lower())


def _groups(metadata: Any, share: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """The row groups of one of several shares of a file: number, position of the first row, and number of rows."""
    part, parts = share
    groups, first = metadata.num_row_groups, 0
    for group in range(groups):
        count = metadata.row_group(group).num_rows
        if group * parts // groups == part:
            yield group, first, count
        first += count


# -- which rows --------------------------------------------------------------------------------------------------------


def _mask(file: Mapping[str, Any]) -> pa.BooleanArray | None:
    """Which rows are shown, from the first one on; None: all."""
    if file["mask"] is None:
        return None
    packed, length = file["mask"]
    return pa.Array.from_buffers(pa.bool_(), length, [None, pa.py_buffer(zlib.decompress(packed))])


def _part(mask: pa.BooleanArray, file: Mapping[str, Any], first: int, count: int) -> pa.BooleanArray:
    """The same of some rows. Behind the end of the mask all are as the file says ``beyond``."""
    part = mask.slice(first, count)
    return part if len(part) == count else pa.concat_arrays([part, pa.repeat(file["beyond"], count - len(part))])


# -- columns -----------------------------------------------------------------------------------------------------------


def _fit_batch(
    batch: pa.RecordBatch,
    wanted: pa.Schema,
    physical: pa.Schema,
    there: Mapping[str, str],
    constants: Mapping[str, Any],
) -> pa.RecordBatch:
    """The batch with the columns of the table."""
    columns = []
    for field, inside in zip(wanted, physical, strict=True):
        name = _name_in_file(there, inside.name)
        if inside.name in constants:
            columns.append(pa.repeat(pa.scalar(constants[inside.name], field.type), batch.num_rows))
        elif name is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(_fit_values(batch.column(name), field.type, inside.type, field.name))
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _fit_values(values: pa.Array, wanted: pa.DataType, physical: pa.DataType, path: str) -> pa.Array:
    """Values of a file as those of a column; members of structs are found by their names in files."""
    values = _plain(values)
    if pa.types.is_struct(wanted) and pa.types.is_struct(values.type):
        return _fit_struct(values, wanted, physical, path)
    if pa.types.is_map(wanted) and pa.types.is_map(values.type):
        keys = _fit_values(values.keys, wanted.key_type, physical.key_type, f"{path}.key")
        items = _fit_values(values.items, wanted.item_type, physical.item_type, f"{path}.value")
        entries = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
        return _around(values, wanted, entries)
    if pa.types.is_list(wanted) and pa.types.is_list(values.type):
        return _around(
            values, wanted, _fit_values(values.values, wanted.value_type, physical.value_type, f"{path}.element")
        )
    return _fit_plain(values, wanted, path)


def _plain(values: pa.Array) -> pa.Array:
    """The same without the Arrow type that the writer of a file asks for: to Parquet it is a plain list or text."""
    if isinstance(values, pa.ExtensionArray):
        return _plain(values.storage)
    if isinstance(values, pa.DictionaryArray):
        return values.dictionary_decode()
    if pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type):
        return values.cast(pa.list_(values.type.value_field))
    return values


def _around(values: pa.Array, wanted: pa.DataType, inside: pa.Array) -> pa.Array:
    """A list or map with the same borders around other elements."""
    return pa.Array.from_buffers(wanted, len(values), values.buffers()[:2], offset=values.offset, children=[inside])


def _fit_struct(values: pa.Array, wanted: pa.DataType, physical: pa.DataType, path: str) -> pa.Array:
    there = {field.name.lower(): field.name for field in reversed(list(values.type))}
    members = []
    for field, inside in zip(wanted, physical, strict=True):
        name = _name_in_file(there, inside.name)
        if name is None:
            members.append(pa.nulls(len(values), field.type))
        else:
            found = values.field(values.type.get_field_index(name))
            members.append(_fit_values(found, field.type, inside.type, f"{path}.{field.name}"))
    return pa.StructArray.from_arrays(members, fields=list(wanted), mask=values.is_null()) if members else values


def _fit_plain(values: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    """Values of one type as those of a wider one. Raises ValueError: they are of another kind."""
    there = values.type
    if there.equals(wanted):
        return values
    if not _fits(there, wanted):
        raise ValueError(
            f"[DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS] The column {path} of a data file is of the type {there}, "
            f"which cannot be read as {wanted}: it was written before the type was changed."
        )
    if pa.types.is_timestamp(there) and there.unit == "ns":
        return values.cast(wanted, safe=False)  # digits below microseconds are cut, as by Spark
    if pa.types.is_date32(there) and pa.types.is_timestamp(wanted):
        return pc.multiply_checked(values.cast(pa.int32()).cast(pa.int64()), 86_400_000_000).cast(wanted)
    return values.cast(wanted)


def _fits(there: pa.DataType, wanted: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_null(wanted) or kinds.is_null(there):
        return True
    if kinds.is_timestamp(wanted):
        return bool(kinds.is_timestamp(there) or (kinds.is_date(there) and wanted.tz is None))
    if kinds.is_string(wanted) or kinds.is_binary(wanted):
        return bool(kinds.is_large_string(there) or kinds.is_large_binary(there) or _is_text(there))
    if kinds.is_decimal(wanted):
        return bool(kinds.is_integer(there) or kinds.is_decimal(there))
    if kinds.is_floating(wanted):
        return bool(kinds.is_integer(there) or (kinds.is_floating(there) and there.bit_width <= wanted.bit_width))
    if kinds.is_integer(wanted):
        return bool(kinds.is_integer(there)) and there.bit_width <= wanted.bit_width
    return bool(kinds.is_date(wanted) and kinds.is_date(there))


def _is_text(there: pa.DataType) -> bool:
    is_view = str(there) in ("string_view", "binary_view")  # older Arrow does not know them
    return is_view or bool(
        pa.types.is_string(there) or pa.types.is_binary(there) or pa.types.is_fixed_size_binary(there)
    )

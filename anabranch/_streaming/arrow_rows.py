"""Reads the rows of data files on executors, as Arrow batches.

Imports pyarrow only: this module travels to executors by value, where Anabranch is not installed. The task consists of
plain values (`anabranch._streaming.tasks`). Guarantee: a column that cannot be read as the requested type ends the
task; no value is cut or guessed.
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
"""Environment variables that hold credentials, by the scheme of a bucket."""


def read_rows(task: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a task's files, one file after the other.

    Args:
        task: ``wanted`` and ``physical`` are the columns with their names in the table and in files, as Arrow schemas;
            ``files`` has the location and the shown rows of each file.
    """
    for file in task["files"]:
        yield from _rows_of_file(file, task["wanted"], file.get("physical") or task["physical"])


def _rows_of_file(file: Mapping[str, Any], target: pa.Schema, physical: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _open_file(file) as source:
        parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        file_names = {name.lower(): name for name in reversed(parquet.schema_arrow.names)}
        constants: Mapping[str, Any] = file["constants"]
        found_names = [_name_in_file(file_names, name) for name in physical.names if name not in constants]
        names = [name for name in found_names if name is not None]
        mask = _mask(file)
        if mask is not None and len(mask) > parquet.metadata.num_rows:
            raise ValueError(
                f"[DELTA_DELETION_VECTOR_CORRUPT] {_describe_file(file)}, which has fewer rows than its vector says."
            )
        for group, first, count in _groups(parquet.metadata, file["share"]):
            if mask is not None and not _part(mask, file, first, count).true_count:
                continue
            for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=names, use_threads=False):
                shown = _fit_batch(batch, target, physical, file_names, constants)
                if mask is not None:
                    shown = shown.filter(_part(mask, file, first, batch.num_rows))
                first += batch.num_rows
                if shown.num_rows:
                    yield shown


def _open_file(file: Mapping[str, Any]) -> Any:
    """Opens a file. Raises FileNotFoundError, ValueError: it is missing, or not the one that the log names."""
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


def bucket_of(store: str, options: Mapping[str, str] = _NOTHING) -> tuple[Any, str]:
    """Arrow's file system of a bucket, and the bucket's name in it. For S3, Arrow reads only keys from the environment.

    Args:
        options: the session's settings of the bucket; ignored where this process's environment has credentials.
    """
    if any(map(os.environ.get, _CREDENTIALS[store.partition(":")[0]])):
        options = {}
    if store.startswith("gs://"):
        return _google(options), store.removeprefix("gs://")
    if store.startswith("abfss://"):
        container, _, host = store.removeprefix("abfss://").partition("@")
        return _azure(container, host, options)
    return _s3(store.removeprefix("s3://"), options)


def _s3(bucket: str, options: Mapping[str, str]) -> tuple[Any, str]:
    endpoint = options.get("endpoint") or _from_environment("AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    region = options.get("region") or _from_environment("AWS_REGION", "AWS_DEFAULT_REGION")
    if not (options or endpoint or region):
        from_uri: tuple[Any, str] = pafs.FileSystem.from_uri(f"s3://{bucket}")
        return from_uri
    scheme, _, server = endpoint.rpartition("://")
    arguments: dict[str, Any] = {"endpoint_override": server, "scheme": scheme or "https"} if server else {}
    if options.get("virtual_hosted_style_request") == "true":
        arguments |= {"endpoint_override": server.removeprefix(f"{bucket}."), "force_virtual_addressing": True}
    if options.get("access_key_id"):
        names = {"access_key": "access_key_id", "secret_key": "secret_access_key", "session_token": "session_token"}
        arguments |= {name: options.get(option) for name, option in names.items()}
    return pafs.S3FileSystem(region=region or None, anonymous="skip_signature" in options, **arguments), bucket


def _google(options: Mapping[str, str]) -> Any:
    """Arrow's Google Cloud client, with a short timeout: by default it looks 15 minutes for missing credentials."""
    scheme, _, server = (options.get("base_url") or _from_environment("GOOGLE_BASE_URL")).rpartition("://")
    arguments: dict[str, Any] = {"endpoint_override": server, "scheme": scheme or "https"} if server else {}
    anonymous = "skip_signature" in options or _from_environment("GOOGLE_SKIP_SIGNATURE").lower() == "true"
    return pafs.GcsFileSystem(anonymous=anonymous, retry_time_limit=GOOGLE_PATIENCE, **arguments)


def _azure(container: str, host: str, options: Mapping[str, str]) -> tuple[Any, str]:
    """Arrow's client of an Azure account. Without credentials it ends the process, so all configured ones are passed;
    it finds the machine's own identity by itself.
    """
    account = host.partition(".")[0]
    arguments: dict[str, Any] = azure_server(account, _from_environment("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"))
    principal = {
        name: options.get(name) or _from_environment(f"AZURE_STORAGE_{name.upper()}", f"AZURE_{name.upper()}")
        for name in ("client_id", "client_secret", "tenant_id")
    }
    if key := options.get("account_key") or _from_environment(*_AZURE_KEYS):
        arguments["account_key"] = key
    elif token := options.get("sas_key") or _from_environment(*_AZURE_TOKENS):
        arguments["sas_token"] = f"?{token.removeprefix('?')}"
    elif all(principal.values()):
        arguments |= principal
    return pafs.AzureFileSystem(account, **arguments), container


def azure_server(account: str, endpoint: str) -> dict[str, str]:
    """Arrow's arguments for an account's server. Azure names the account in the host, other servers in the path."""
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


def _name_in_file(file_names: Mapping[str, str], name: str) -> str | None:
    """The name of a column in a file; None where the file does not have it."""
    return name if name in file_names.values() else file_names.get(name.lower())


def _groups(metadata: Any, share: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """The row groups of one share of a file: number, position of the first row, and number of rows."""
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
    """The part of the mask for some rows. Rows behind its end have the file's value ``beyond``."""
    part = mask.slice(first, count)
    return part if len(part) == count else pa.concat_arrays([part, pa.repeat(file["beyond"], count - len(part))])


# -- columns -----------------------------------------------------------------------------------------------------------


def _fit_batch(
    batch: pa.RecordBatch,
    target: pa.Schema,
    physical: pa.Schema,
    file_names: Mapping[str, str],
    constants: Mapping[str, Any],
) -> pa.RecordBatch:
    """Converts a batch to the table's columns."""
    columns = []
    for field, stored in zip(target, physical, strict=True):
        name = _name_in_file(file_names, stored.name)
        if stored.name in constants:
            columns.append(pa.repeat(pa.scalar(constants[stored.name], field.type), batch.num_rows))
        elif name is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            columns.append(_fit_values(batch.column(name), field.type, stored.type, field.name))
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _fit_values(values: pa.Array, target: pa.DataType, physical: pa.DataType, path: str) -> pa.Array:
    """Converts a file's values to a column's type; members of structs are matched by their names in files."""
    values = _plain(values)
    if pa.types.is_struct(target) and pa.types.is_struct(values.type):
        return _fit_struct(values, target, physical, path)
    if pa.types.is_map(target) and pa.types.is_map(values.type):
        keys = _fit_values(values.keys, target.key_type, physical.key_type, f"{path}.key")
        items = _fit_values(values.items, target.item_type, physical.item_type, f"{path}.value")
        entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
        return _around(values, target, entries)
    if pa.types.is_list(target) and pa.types.is_list(values.type):
        return _around(
            values, target, _fit_values(values.values, target.value_type, physical.value_type, f"{path}.element")
        )
    return _fit_plain(values, target, path)


def _plain(values: pa.Array) -> pa.Array:
    """Unwraps Arrow-only types that the file's writer recorded: to Parquet they are plain lists or texts."""
    if isinstance(values, pa.ExtensionArray):
        return _plain(values.storage)
    if isinstance(values, pa.DictionaryArray):
        return values.dictionary_decode()
    if pa.types.is_large_list(values.type) or pa.types.is_fixed_size_list(values.type):
        return values.cast(pa.list_(values.type.value_field))
    return values


def _around(values: pa.Array, target: pa.DataType, inside: pa.Array) -> pa.Array:
    """A list or map with the same offsets around other elements."""
    return pa.Array.from_buffers(target, len(values), values.buffers()[:2], offset=values.offset, children=[inside])


def _fit_struct(values: pa.Array, target: pa.DataType, physical: pa.DataType, path: str) -> pa.Array:
    file_names = {field.name.lower(): field.name for field in reversed(list(values.type))}
    members = []
    for field, stored in zip(target, physical, strict=True):
        name = _name_in_file(file_names, stored.name)
        if name is None:
            members.append(pa.nulls(len(values), field.type))
        else:
            member = values.field(values.type.get_field_index(name))
            members.append(_fit_values(member, field.type, stored.type, f"{path}.{field.name}"))
    return pa.StructArray.from_arrays(members, fields=list(target), mask=values.is_null()) if members else values


def _fit_plain(values: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """Widens values to another type. Raises ValueError: they are not convertible."""
    stored = values.type
    if stored.equals(target):
        return values
    if not _fits(stored, target):
        raise ValueError(
            f"[DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS] The column {path} of a data file is of the type {stored}, "
            f"which cannot be read as {target}: it was written before the type was changed."
        )
    if pa.types.is_timestamp(stored) and stored.unit == "ns":
        return values.cast(target, safe=False)  # truncates to microseconds, as Spark does
    if pa.types.is_date32(stored) and pa.types.is_timestamp(target):
        return pc.multiply_checked(values.cast(pa.int32()).cast(pa.int64()), 86_400_000_000).cast(target)
    return values.cast(target)


def _fits(stored: pa.DataType, target: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_null(target) or kinds.is_null(stored):
        return True
    if kinds.is_timestamp(target):
        return bool(kinds.is_timestamp(stored) or (kinds.is_date(stored) and target.tz is None))
    if kinds.is_string(target) or kinds.is_binary(target):
        return bool(kinds.is_large_string(stored) or kinds.is_large_binary(stored) or _is_text(stored))
    if kinds.is_decimal(target):
        return bool(kinds.is_integer(stored) or kinds.is_decimal(stored))
    if kinds.is_floating(target):
        return bool(kinds.is_integer(stored) or (kinds.is_floating(stored) and stored.bit_width <= target.bit_width))
    if kinds.is_duration(target):
        return bool(kinds.is_int64(stored) or stored.equals(target))
    if kinds.is_integer(target):
        return bool(kinds.is_integer(stored)) and stored.bit_width <= target.bit_width
    return bool(kinds.is_date(target) and kinds.is_date(stored))


def _is_text(stored: pa.DataType) -> bool:
    is_view = str(stored) in ("string_view", "binary_view")  # older Arrow has no constants for them
    return is_view or bool(
        pa.types.is_string(stored) or pa.types.is_binary(stored) or pa.types.is_fixed_size_binary(stored)
    )

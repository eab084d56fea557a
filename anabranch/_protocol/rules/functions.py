"""The functions of Spark that a table's rules may call.

An allow-list: whatever a table's metadata contains, no other function reaches Spark. Each of these is built in and
depends only on its arguments and the session's settings: none reads a file, the environment or another row, none calls
code by its name, none is random. Pure. ``docs/concepts/constraints.md`` shows the list; a test checks that both are
equal.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NUMBERS = _words(
    """abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees div e exp
    expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod nanvl negative pi pmod positive pow power
    radians rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract
    try_to_number to_number unhex width_bucket bit_count bit_get getbit shiftleft shiftright shiftrightunsigned isnan"""
)
CONDITIONS = _words(
    """assert_true between coalesce equal_null if ifnull isnotnull isnull nullif nullifzero nvl nvl2 typeof when
    zeroifnull not like ilike rlike regexp in"""
)
TEXTS = _words(
    """ascii base64 bit_length btrim char char_length character_length chr concat_ws contains decode elt encode
    endswith find_in_set format_number format_string get_json_object initcap instr is_valid_utf8 json_array_length
    json_object_keys lcase left len length levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask
    octet_length overlay parse_url position printf regexp_count regexp_extract regexp_extract_all regexp_instr
    regexp_like regexp_replace regexp_substr repeat replace right rpad rtrim sentences soundex space split split_part
    startswith str_to_map substr substring substring_index to_binary to_char to_varchar translate trim try_parse_url
    try_to_binary try_url_decode try_validate_utf8 ucase unbase64 upper url_decode url_encode validate_utf8"""
)
TIMES = _words(
    """add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour
    last_day make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_ym_interval minute month monthname months_between next_day quarter second timestamp_micros timestamp_millis
    timestamp_seconds timestampadd timestampdiff to_date to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp
    weekday weekofyear year"""
)
COLLECTIONS = _words(
    """aggregate array array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat array_size
    array_sort array_union arrays_overlap arrays_zip cardinality concat element_at exists filter flatten forall get map
    map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with
    named_struct reduce reverse sequence size slice sort_array struct transform transform_keys transform_values
    try_element_at zip_with from_csv from_json schema_of_csv schema_of_json to_csv to_json is_variant_null parse_json
    schema_of_variant to_variant_object try_parse_json try_variant_get variant_get"""
)
SHAPES = _words("st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid")
HASHES = _words("crc32 hash md5 sha sha1 sha2 xxhash64")
CASTS = _words("bigint binary boolean cast date decimal double float int smallint string timestamp tinyint try_cast")

CLOCKS = _words("curdate current_date current_timestamp localtimestamp now")
"""Allowed in CHECK constraints and defaults, which apply at the time of a write; not in generated columns."""

FUNCTIONS = NUMBERS | CONDITIONS | TEXTS | TIMES | COLLECTIONS | SHAPES | HASHES | CASTS

CLOCKS_WITHOUT_ARGUMENTS = _words("unix_timestamp to_unix_timestamp")
"""These read the clock when called without arguments."""

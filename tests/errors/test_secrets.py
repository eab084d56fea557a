"""Which names are those of secrets, and how a secret may be spelled."""

from __future__ import annotations

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors.secrets import is_secret, without_secrets, without_texts, without_values
from tests.support.growth import times_more

NAMES = [
    "delegation",
    "connection_string",
    "connectionString",
    "azure-storage-connection-string",
    "conn_str",
    "assertion",
]
NAMES += ["client_assertion", "ticket", "kerberos.ticket", "Cookie", "refresh", "refreshToken", "pw", "db_pw", "userPw"]
NAMES += ["PW", "pwHash", "sig", "X-Amz-Signature", "account_key", "%64elegation", "pass%2577ord"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_secret_is_known_in_each_spelling(name: str) -> None:
    assert is_secret(name)
    assert is_secret(name.upper())
    assert without_secrets(f"s3://lake/t?{name}=hidden") == "s3://lake/t"
    assert without_values("it is hidden", {name: "hidden"}) == "it is ***"


@pytest.mark.parametrize(
    "name", ["upward", "shopwise", "region", "timeout", "version", "delegate", "connect", "stringency"]
)
def test_other_names_are_none(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["\\", "%25", "aaaaaaab", "0"])
def test_masking_takes_time_as_a_text_has_letters(piece: str) -> None:
    def masked(times: int) -> str:
        return without_texts(piece * times, ["aaaaaaaaa"])

    assert times_more(lambda: masked(2_000), lambda: masked(20_000)) < 40


secrets = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=4, max_size=12)
SPELLINGS = {
    "as it is": str,
    "in a path": quote,
    "in a query": lambda secret: quote(secret, safe=""),
    "in a form": quote_plus,
    "in small letters": lambda secret: quote(secret, safe="").replace("%C3", "%c3").replace("%2F", "%2f"),
    "twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "in JSON": lambda secret: json.dumps(secret)[1:-1],
    "in JSON of letters": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "in XML": lambda secret: "".join(f"&#{ord(letter)};" for letter in secret),
    "in hexadecimal XML": lambda secret: "".join(f"&#x{ord(letter):X};" for letter in secret),
    "in Rust": lambda secret: "".join(rf"\u{{{ord(letter):x}}}" for letter in secret),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(secret=secrets, before=st.sampled_from(["", "token=", "%", "\\", "a"]))
def test_a_secret_is_found_however_it_is_spelled(spelling: str, secret: str, before: str) -> None:
    spelled = SPELLINGS[spelling](secret)
    assert spelled not in without_texts(f"{before}{spelled} and {spelled}", [secret])

"""Where something is wrong in a statement is shown, and no secret beside it."""

from __future__ import annotations

import pytest

from anabranch._expressions.error_pointer import excerpt


@pytest.mark.parametrize(
    "setting",
    [
        "'fs.s3a.secret.key' = 'tiger'",
        '`fs.s3a.access.key` = "tiger"',
        "fs.azure.account.key.x.dfs.core.windows.net 'tiger'",
        "'option.fs.s3a.session.token'='tiger'",
        "spark.hadoop.fs.s3a.secret.key = 'it''s a tiger'",
        "password = 'a \\' tiger'",
        "Token 'tiger that does not end",
    ],
)
def test_values_of_secrets_are_stars_and_the_carets_stay_in_place(setting: str) -> None:
    text = f"CREATE TABLE t (id INT) OPTIONS ({setting}, fs.s3a.endpoint 'http://h') FORM"
    shown = excerpt(text, text.index("FORM"), len(text)).splitlines()
    assert "tiger" not in shown[1]
    assert "***" in shown[1]
    assert shown[2].index("^") == text.index("FORM")


@pytest.mark.parametrize("text", ["SELECT 1 FROM t WHERE key = 'tiger' FORM", "SET t.auth_id = 'tiger' FORM"])
def test_columns_that_are_called_like_secrets_are_shown(text: str) -> None:
    assert text in excerpt(text, 0, 1)


@pytest.mark.parametrize("setting", ["'my.secret' = 'tiger'", '"a.b.token"="tiger"'])
def test_a_property_in_quotes_that_is_called_like_a_secret_is_not_shown(setting: str) -> None:
    assert "tiger" not in excerpt(f"ALTER TABLE t SET TBLPROPERTIES ({setting})", 0, 5)

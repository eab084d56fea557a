"""A variant that is NOT NULL."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch import errors

pytestmark = pytest.mark.spark


def test_a_variant_that_is_not_null_takes_rows_and_refuses_null(run: Any) -> None:
    run("CREATE TABLE t (v VARIANT NOT NULL, id INT) USING delta")
    run("""INSERT INTO t VALUES (parse_json('{"a": 1}'), 1), (parse_json('null'), 2)""")
    with pytest.raises(errors.NotNullViolated):
        run("INSERT INTO t VALUES (parse_json('1'), 3), (NULL, 4)")
    run("UPDATE t SET v = parse_json('7') WHERE id = 2")
    assert run("SELECT to_json(v), id FROM t") == [("7", 2), ('{"a":1}', 1)]

"""SQL statements: text to a value (`grammar`), and the value to a command (`executor`).

`conditions` and `merge_request` serve the Python doors too, which take the same texts. The room is not called ``sql``,
since the package's attribute ``anabranch.sql`` is the public function.
"""

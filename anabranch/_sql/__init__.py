"""SQL statements: parses text into values (`grammar`), and runs these as commands (`executor`).

The Python API uses `conditions` and `merge_request` too, for the same texts. The package is not named ``sql``, since
the attribute ``anabranch.sql`` is the public function.
"""

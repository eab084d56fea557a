"""How many small faults in decision code the tests notice: ``make mutants``.

A mutant is the package with one operator, condition, number or handler changed by cosmic-ray. A sample of them, drawn
by a seed, is judged by the tests that run the changed line: first by those of ``make test``, and those that survive by
those of ``make test-all``. (`laboratory.mutants`, which breaks one rule on purpose, is another thing.)

    python -m tools.mutants --help

`mutations` knows the operators, `left_out` what is no decision, `drawing` the sample, `coverage_map` which test runs
which line, `choosing` which of them judge a mutant, `copies` how pytest runs in a copy of the tree, `judging` the order
of it all, `results` what is kept and printed.
"""

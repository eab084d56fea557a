"""Two versions, ours and the winner's, and the order between them. Never sees a row's values.

A command stages a `Transaction` and calls `commit`. That reads the commits since its base, judges it against them
(`conflicts`), carries it over (`rebase`, `relocation`, `fence`), and puts one commit file (`put`). Questions that only
the command can answer go to its `RebaseHandler` (`rebase_handler`).
"""

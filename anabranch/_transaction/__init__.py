"""Two versions, ours and the winner's, and the order between them. Never sees a row's values.

A command stages a `Transaction` and calls `commit`. That looks at what was committed since, judges it (`conflicts`),
carries ours over (`rebase`, `relocation`, `fence`), and puts one commit file (`put`). What only the command knows, it
tells through its `RebaseHandler` (`rebase_handler`).
"""

"""Sources of Python as trees: each is parsed once for a process, and Python looks for no garbage meanwhile, which would
take as long again.
"""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree_of(module: Path) -> ast.Module:
    """The tree of a file."""
    text, collects = module.read_text(encoding="utf-8"), gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text, filename=str(module))
    finally:
        gc.freeze()  # the tree stays
        if collects:
            gc.enable()

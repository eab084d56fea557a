"""What makes a site of the pages: the hooks of mkdocs, and an extension that reads our docstrings."""

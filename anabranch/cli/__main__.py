"""``python -m anabranch.cli``."""

from anabranch.cli import main

main()

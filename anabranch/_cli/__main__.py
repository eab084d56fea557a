"""``python -m anabranch._cli``."""

from anabranch._cli import main

main()

"""Ahead-of-time compilation for images and clusters: `python -m frontal.warm` is `frontal warm`."""

import sys

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main(["warm", *sys.argv[1:]]))

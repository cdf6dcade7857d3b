"""The command line as a module: `python -m frontal`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())

"""`sepnb` and `python -m sepnb`: the command line, or what to install to have it."""

import sys


def main() -> None:
    """Hand over to `sepnb.cli`."""
    try:
        from sepnb.cli import app
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sepnb"):
            raise
        remedy = "the extra run of sepnb brings it, in a checkout of the book: pip install '.[run]'"
        sys.exit(f"the command line needs the package {error.name}; {remedy}")
    app(prog_name="sepnb")


if __name__ == "__main__":
    main()

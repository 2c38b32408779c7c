"""`sepnb` and `python -m sepnb`: the command line, or what to install to have it."""

import sys


def main() -> None:
    """Hand over to `sepnb.cli`."""
    try:
        from sepnb.cli import app
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sepnb"):
            raise
        sys.exit(f"the command line needs the package {error.name}: pip install 'sepnb[run]'")
    app(prog_name="sepnb")


if __name__ == "__main__":
    main()

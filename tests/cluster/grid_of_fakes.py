"""`sepnb` where the only experiment is a fake one: `grid_of_fakes.py LOG SECONDS METHODS ARGUMENT …`."""

import signal
import sys
from pathlib import Path

from fake_experiments import Fake

from sepnb import cli, experiments

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background inherits none
    log, slow, methods, *arguments = sys.argv[1:]
    fake = Fake(methods=tuple(methods.split(",")), slow=float(slow), log=Path(log))
    experiments.names, experiments.get = lambda: ["fake"], lambda name: fake
    cli.app(arguments)

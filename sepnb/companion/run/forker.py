"""A program that imports the libraries of a kernel once, and forks for every line of its standard input.

A line is the JSON of a kernel's command, environment and working folder; the answer is the kernel's process
id. `sepnb.companion.run.kernels` starts it by path. It imports nothing of this book, and draws, opens and
computes nothing before it forks. It leaves at the end of its input, and its kernels leave with it.
"""

import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence

PRELOADED = ("torch", "torch._dynamo", "seaborn", "ipykernel.kernelapp")


def serve() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a kernel that has ended is gone, and can be seen to be
    # Read at import: by whose end a kernel ends, and where figures go.
    own = {"JPY_PARENT_PID": str(os.getpid()), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    os.environ |= own
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in iter(sys.stdin.readline, ""):
        if pid := os.fork():
            print(pid, flush=True)
        else:
            asked = json.loads(line)
            become(asked["command"], {**asked["environment"], **own}, asked["folder"])
            return


def become(command: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
    """The kernel `python -m ipykernel_launcher …`."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # answers go to the pipe that stood here
    os.environ.clear()
    os.environ |= environment
    os.chdir(folder)
    sys.argv = list(command[2:])
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()


if __name__ == "__main__":
    serve()

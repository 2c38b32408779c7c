"""Get an archive from its owner and unpack it; nothing that arrived broken stays on the disk."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import requests

from sepnb import __version__
from sepnb.data.containers import Unreadable

# Some owners refuse requests that do not say who asks.
_HEADERS = {"User-Agent": f"sepnb/{__version__}"}


class NotDelivered(OSError):
    """An address did not give a whole archive; the message says which address and why."""


def download(
    address: str,
    unpack: Callable[[Path], dict[str, bytes]],
    *,
    progress: bool = True,
    timeout: float = 30.0,
) -> dict[str, bytes]:
    """What `unpack` makes of the archive at `address`. The archive itself is deleted in any case.

    Args:
        progress: show a bar on standard error.
        timeout: seconds to wait for an answer, and again for every further piece of the archive.

    Raises:
        NotDelivered: an HTTP status other than success, no answer in time, a transfer that ended early,
            or something that does not unpack.
    """
    import pooch  # its progress bar looks for widgets when it is imported in a notebook, and warns

    get = pooch.HTTPDownloader(progressbar=progress, chunk_size=1 << 16, timeout=timeout, headers=_HEADERS)
    with tempfile.TemporaryDirectory(prefix="sepnb-") as folder:
        archive = Path(folder) / "archive"
        try:
            get(address, str(archive), None)
            return unpack(archive)
        except (requests.RequestException, Unreadable) as error:
            raise NotDelivered(f"{address}: {error}") from error

"""The book's local Sphinx extension; the logic lives in the package, where it is tested."""

from sepnb.companion.book.site import setup

__all__ = ["setup"]

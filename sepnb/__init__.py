"""sepnb: what happens when position gets its own dimensions?"""

from importlib.metadata import version

__version__ = version("sepnb")

"""The plain text of a novel encoded in TEI, as the European Literary Text Collection publishes it.

One line for each block of the body - heading, paragraph, quotation - with a blank line between two. Front
matter and notes stand outside the body and are left out, page breaks and other empty elements leave no trace,
and runs of white space become one space. The parts of a quotation (verses, the paragraphs of a letter) share
its line.
"""

from collections.abc import Iterator
from xml.etree import ElementTree

_TEI = "{http://www.tei-c.org/ns/1.0}"


def body_text(xml: bytes) -> bytes:
    """UTF-8 text of the `<body>` of a TEI document, ending in a newline.

    Raises:
        ValueError: not well-formed XML, or no TEI body in it.
    """
    try:
        body = ElementTree.fromstring(xml).find(f"{_TEI}text/{_TEI}body")
    except ElementTree.ParseError as error:
        raise ValueError(f"not well-formed XML: {error}") from error
    if body is None:
        raise ValueError("no <text><body> of the TEI namespace in it")
    return ("\n\n".join(_blocks(body)) + "\n").encode()


def _blocks(division: ElementTree.Element) -> Iterator[str]:
    """The blocks in reading order; divisions nest, and every other child of one is a block."""
    for child in division:
        if child.tag == f"{_TEI}div":
            yield from _blocks(child)
        elif text := " ".join("".join(child.itertext()).split()):
            yield text

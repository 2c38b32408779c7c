"""The book for reading devices: EPUB 3, a file a chapter, formulas as MathML, no script.

A package says what is in it (`content.opf`), a page of navigation in which order (`nav.xhtml`); both follow
the contents of the book. The bytes depend on the book and its commit alone.
"""

import io
import re
import zipfile
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from sepnb import paths
from sepnb.companion.editions.pages import About, EditionError

TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}
_DAY = (1980, 1, 1, 0, 0, 0)  # of every file in the archive
_XHTML = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head><title>{title}</title><link rel="stylesheet" type="text/css" href="{style}"/></head>
<body>{body}</body>
</html>
"""
_CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="EPUB/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>
"""
_OPF = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{identifier}</dc:identifier><dc:title>{title}</dc:title><dc:language>en</dc:language>
<dc:creator>The sepnb authors</dc:creator><dc:description>{question}</dc:description>
<dc:rights>{rights}</dc:rights><dc:date>{day}</dc:date>
<meta property="dcterms:modified">{day}T00:00:00Z</meta>
<meta name="cover" content="cover"/>
</metadata>
<manifest>{manifest}</manifest>
<spine>{spine}</spine>
</package>
"""


def write(page: Any, contents: list[dict[str, Any]], first: About, target: Path) -> None:
    """Write the prepared pages to `target`.

    Raises:
        EditionError: a page is not well formed, or a picture is missing or of no kind that devices show.
    """
    files: dict[str, bytes] = {}
    for chapter in contents:
        body = page.evaluate("id => edition.xhtml(id)", chapter["id"])
        body = re.sub(r'(<img\b[^>]*?\bsrc=")([^"]+)"', lambda found: _picture(found, page.url, files), body)
        files[f"{chapter['id']}.xhtml"] = _file(chapter["title"], body)
    files |= {
        "title.xhtml": _file(first.title, _title(first)),
        "nav.xhtml": _file("Contents", _nav(contents)),
    }
    styles = Path(page.url.removeprefix("file://")).parent
    files["style.css"] = _style(page, styles)
    files["cover.png"] = _cover(page)
    files["content.opf"] = _package(files, contents, first)
    paths.write_atomically(target, _zipped(files))


def _file(title: str, body: str) -> bytes:
    text = _XHTML.format(title=escape(title), style="style.css", body=body)
    try:
        ElementTree.fromstring(text)
    except ElementTree.ParseError as problem:
        raise EditionError(f"{title!r} is not well formed as XHTML: {problem}") from problem
    return text.encode()


def _picture(found: re.Match, base: str, files: dict[str, bytes]) -> str:
    """The address of a picture inside the archive, where it is put."""
    file = Path(url2pathname(urlsplit(base).path)).parent / unquote(found[2])
    if file.suffix not in TYPES or not file.is_file():
        raise EditionError(f"the picture {found[2]} is missing, or none of {', '.join(TYPES)}")
    content = file.read_bytes()
    files[f"images/{file.name}"] = _once(content) if file.suffix == ".svg" else content
    return f'{found[1]}images/{file.name}"'


def _once(svg: bytes) -> bytes:
    """The drawing with every id once: matplotlib gives pictures of the same content the same id."""
    seen: set[bytes] = set()

    def name(found: re.Match) -> bytes:
        new = found[1] not in seen
        seen.add(found[1])
        return found[0] if new else b""

    return re.sub(rb' id="([^"]*)"', name, svg)


def _title(first: About) -> str:
    facts = "".join(f"<p>{escape(fact)}</p>" for fact in first.facts)
    return (
        f'<section class="edition-title" epub:type="titlepage"><h1>{escape(first.title)}</h1>'
        f'<p class="question">{escape(first.question)}</p><div class="facts">{facts}</div></section>'
    )


def _nav(contents: list[dict[str, Any]]) -> str:
    """The contents as nested lists: parts, chapters, sections."""

    def line(chapter: dict[str, Any]) -> str:
        inner = "".join(
            f'<li><a href="{chapter["id"]}.xhtml#{one["id"]}">{escape(one["title"])}</a></li>'
            for one in chapter["sections"]
        )
        link = f'<a href="{chapter["id"]}.xhtml">{escape(chapter["title"])}</a>'
        return f"<li>{link}{f'<ol>{inner}</ol>' if inner else ''}</li>"

    parts: dict[str, list[str]] = {}
    for chapter in contents:
        parts.setdefault(chapter["part"], []).append(line(chapter))
    body = "".join(
        f"<li><span>{escape(part)}</span><ol>{''.join(lines)}</ol></li>" if part else "".join(lines)
        for part, lines in parts.items()
    )
    return f'<nav epub:type="toc"><h1>Contents</h1><ol>{body}</ol></nav>'


def _style(page: Any, folder: Path) -> bytes:
    """The styles of the joined document, but for what is said of paper."""
    linked = page.evaluate("() => document.querySelector('link[rel=stylesheet]').getAttribute('href')")
    own = (paths.root() / "book" / "_edition" / "edition.css").read_text(encoding="utf-8")
    light = [
        line
        for line in (folder / linked).read_text(encoding="utf-8").splitlines()
        if 'data-theme="dark"' not in line
    ]
    return "\n".join([*light, own.partition("/* --- paper --- */")[0]]).encode()


def _cover(page: Any) -> bytes:
    """A picture of the first page."""
    box = page.locator(".edition-title")
    box.evaluate("box => box.classList.add('edition-cover')")
    picture = box.screenshot(scale="device")
    box.evaluate("box => box.classList.remove('edition-cover')")
    return picture


def _package(files: dict[str, bytes], contents: list[dict[str, Any]], first: About) -> bytes:
    spine = ["title", "nav", *(chapter["id"] for chapter in contents)]
    items = []
    for at, name in enumerate(sorted(files)):
        key, suffix = Path(name).stem, Path(name).suffix
        types = {".xhtml": "application/xhtml+xml", ".css": "text/css"} | TYPES
        properties = [
            word
            for word, holds in (
                ("nav", name == "nav.xhtml"),
                ("cover-image", name == "cover.png"),
                ("mathml", suffix == ".xhtml" and b"<math" in files[name]),
                ("svg", suffix == ".xhtml" and b"<svg" in files[name]),
            )
            if holds
        ]
        said = f' properties="{" ".join(properties)}"' if properties else ""
        key = key if "/" not in name else f"image-{at}"
        items.append(f'<item id="{key}" href="{name}" media-type="{types[suffix]}"{said}/>')
    return _OPF.format(
        identifier=f"urn:uuid:{uuid5(NAMESPACE_URL, f'sepnb {first.version} {first.commit}')}",
        title=escape(first.title),
        question=escape(first.question),
        rights=escape(first.facts[1]),
        day=first.day,
        manifest="".join(items),
        spine="".join(f'<itemref idref="{key}"/>' for key in spine),
    ).encode()


def _zipped(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        # Readers look for the first entry, uncompressed, to know what the file is.
        archive.writestr(zipfile.ZipInfo("mimetype", _DAY), "application/epub+zip", zipfile.ZIP_STORED)
        inside = {"META-INF/container.xml": _CONTAINER.encode()} | {
            f"EPUB/{k}": v for k, v in sorted(files.items())
        }
        for name, content in inside.items():
            archive.writestr(zipfile.ZipInfo(name, _DAY), content, zipfile.ZIP_DEFLATED)
    return held.getvalue()

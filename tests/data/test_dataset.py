"""A data set on the disk and on its way there: what is found, what is refused, what a download leaves behind.

The owner is played by a server on loopback; no test needs a network.
"""

import dataclasses
import gzip
import hashlib
import http.server
import io
import lzma
import tarfile
import threading
import zipfile
from pathlib import Path

import platformdirs
import pytest

from sepnb import paths
from sepnb.data import containers, registry
from sepnb.data.dataset import DataDamaged, DataMissing, DataSet, Part, canonical_sha256
from sepnb.data.text import load

from ..shared import refused

TOKENS = {
    f"wiki.{split}.tokens": f" \n = {split} = \n \n words \n".encode() for split in ("train", "valid", "test")
}


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch) -> Path:
    """An empty data folder and an empty cache, and no proxy between us and loopback."""
    monkeypatch.setenv("SEPNB_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


def small(*addresses: str) -> DataSet:
    """A data set of WikiText's form with three short parts."""
    parts = tuple(Part(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in TOKENS.items())
    words = {
        "name": "small",
        "title": "three lines",
        "licence": "none",
        "source": "this test",
        "note": "none",
    }
    how = {"decode": containers.wikitext_files, "unpack": containers.wikitext_zip}
    return DataSet(**words, **how, sha256=canonical_sha256(TOKENS.items()), parts=parts, addresses=addresses)


def put_archives(data_set: DataSet, contents: dict[str, bytes]) -> None:
    data_set.folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (data_set.folder / f"{name.split('.')[1]}.txt.xz").write_bytes(lzma.compress(data))


def said(data_set: DataSet) -> dict[str, bytes]:
    return {name: data.tobytes() for name, data in data_set.read().items()}


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# on the disk


def test_archives_are_decoded_once_and_then_read_from_the_cache():
    data_set = small()
    put_archives(data_set, TOKENS)
    assert said(data_set) == TOKENS
    assert data_set.cached.read_bytes() == b"".join(TOKENS.values())
    undecodable = dataclasses.replace(data_set, decode=lambda *_: pytest.fail("decoded twice"))
    assert said(undecodable) == TOKENS


BAD = {"truncated": b"", "altered": b"x" * len(b"".join(TOKENS.values()))}


@pytest.mark.attack("a cached text that was cut or altered")
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_cached_copy_is_made_anew(bad):
    data_set = small()
    put_archives(data_set, TOKENS)
    data_set.cached.parent.mkdir(parents=True)
    data_set.cached.write_bytes(BAD[bad])
    assert said(data_set) == TOKENS
    assert data_set.cached.read_bytes() == b"".join(TOKENS.values())


def test_a_place_that_cannot_be_written_is_no_obstacle_to_reading(places):
    data_set = small()
    put_archives(data_set, TOKENS)
    (places / "cache").write_text("a file where the folder should be")
    assert said(data_set) == TOKENS
    with pytest.raises(OSError):
        paths.write_atomically(data_set.cached, b"text")


def test_a_missing_set_says_where_it_was_looked_for_and_how_to_get_it():
    data_set = small("http://127.0.0.1:9/never-asked")
    assert data_set.status() == "missing"
    with pytest.raises(DataMissing) as missing:
        data_set.read()
    assert isinstance(missing.value, FileNotFoundError)
    for part in ("data set small is missing", str(data_set.folder), "`sepnb data small`", "SEPNB_DATA"):
        assert part in str(missing.value)
    refused("`sepnb data eltec-eng`", load, "eltec-eng", error=DataMissing)


def test_half_the_archives_are_not_the_set():
    data_set = small()
    put_archives(data_set, {"wiki.train.tokens": TOKENS["wiki.train.tokens"]})
    assert data_set.status() == "missing"


@pytest.mark.attack("archives on the disk that were cut or altered")
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (
            lambda file: lzma.compress(b"other words"),
            r"small: what lies in .* \(hash \w{12}, .*\); differ: wiki\.test\.tokens$",
        ),
        (lambda file: file.read_bytes()[:-9], r"test\.txt\.xz is not a whole \.xz file"),
    ],
)
def test_altered_and_truncated_parts_are_refused_by_name(spoil, why):
    data_set = small()
    put_archives(data_set, TOKENS)
    file = data_set.folder / "test.txt.xz"
    file.write_bytes(spoil(file))
    assert data_set.status() == "damaged"
    refused(why, data_set.read, error=DataDamaged)
    assert not data_set.cached.exists()


def test_words_moved_over_a_border_are_another_text():
    first, *others = TOKENS.items()
    moved = {first[0]: first[1] + b"x"} | {others[0][0]: others[0][1][1:]} | dict(others[1:])
    with pytest.raises(DataDamaged, match=r"differ: wiki\.train\.tokens, wiki\.valid\.tokens$"):
        small().check(moved, "here")
    with pytest.raises(DataDamaged, match=r"absent: wiki\.test\.tokens$"):
        small().check(dict(list(TOKENS.items())[:2]), "here")


def test_the_novels_are_read_from_their_tar(places):
    def member(name: str, data: bytes) -> None:
        info = tarfile.TarInfo(f"ELTeC-eng-txt/{name}")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))

    file = places / "ELTeC-eng-txt.tar.xz"
    with tarfile.open(file, "w:xz") as tar:
        member("README.txt", b"not a novel")
        member("ENG2.txt", b"second\n")
        member("ENG1.txt", b"first\n")
    novels = [("ENG1.txt", b"first\n"), ("ENG2.txt", b"second\n")]
    assert list(containers.eltec_archive(places).items()) == novels
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(containers.Unreadable, match=r"ELTeC-eng-txt\.tar\.xz is not a whole \.tar\.xz"):
        containers.eltec_archive(places)


# from the owner


def packed(contents: dict[str, bytes], folder: str, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in contents.items():
            archive.writestr(f"{folder}/{name}", data)
    return buffer.getvalue()


WHOLE = packed(TOKENS, "wikitext-2")


PIECES = {f"/several/{name}.gz": gzip.compress(data) for name, data in TOKENS.items()}
PIECES |= {f"/altered/{name}.gz": gzip.compress(b"other words") for name in TOKENS}
PIECES |= {f"/half/{name}.gz": gzip.compress(data)[:-5] for name, data in TOKENS.items()}


CUT, PAGE = WHOLE[:-50], b"<html>Please log in</html>"
BODIES = {"/whole": WHOLE, "/page": PAGE, "/cut": CUT, "/broken-off": CUT, "/stalls": WHOLE[:50], **PIECES}
BODIES["/bomb"] = packed(TOKENS | {"wiki.train.tokens": bytes(10**6)}, "wikitext-2")
PIECES["/bombs/wiki.train.tokens.gz"] = BODIES["/bombs/wiki.train.tokens.gz"] = gzip.compress(bytes(10**6))


def _edited(flags: int | None = None, method: int | None = None, data: bool = False) -> bytes:
    """The good archive with other words in the headers of its members, or with the data of one spoilt."""
    body = bytearray(packed(TOKENS, "wikitext-2", zipfile.ZIP_LZMA if data else zipfile.ZIP_DEFLATED))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = body.find(signature)
        while start >= 0:
            if flags is not None:
                body[start + at : start + at + 2] = flags.to_bytes(2, "little")
            if method is not None:
                body[start + at + 2 : start + at + 4] = method.to_bytes(2, "little")
            start = body.find(signature, start + 4)
    if data:
        begin = body.find(b".tokens") + len(b".tokens")
        body[begin : begin + 20] = b"\xff" * 20
    return bytes(body)


BODIES |= {"/encrypted": _edited(flags=1), "/method": _edited(method=99), "/lzma": _edited(data=True)}
BODIES["/elsewhere"] = packed(TOKENS | {"../../../wiki.train.tokens": b"outside"}, "wikitext-2")
BODIES["/wrong"] = packed(TOKENS | {"wiki.train.tokens": b"other words"}, "wikitext-2")


@pytest.fixture
def owner():
    """Address of a server with a good archive and every way of not delivering one."""
    leave = threading.Event()

    class Owner(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/silent":
                leave.wait(10)
                return
            if self.path not in BODIES:
                self.send_error(404)
                return
            body = BODIES[self.path]
            ends_early = self.path in ("/broken-off", "/stalls")
            self.send_response(200)
            self.send_header("Content-Length", str(len(WHOLE if ends_early else body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
            if self.path == "/stalls":
                leave.wait(10)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Owner)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    leave.set()
    server.shutdown()
    thread.join()
    server.server_close()


def several(*addresses: str) -> DataSet:
    """The same three parts from an owner who packs each by itself."""
    files = tuple(f"{name}.gz" for name in TOKENS)
    return dataclasses.replace(small(*addresses), files=files, unpack=containers.gzip_file)


@pytest.mark.parametrize(("kind", "path"), [(small, "whole"), (several, "several")])
def test_a_fetched_set_is_at_hand(owner, places, kind, path):
    data_set = kind(f"{owner}/{path}")
    assert data_set.fetch(progress=False) == f"came from {owner}/{path} and lies in {data_set.fetched}"
    assert files_below(places) == ["data/small/decoded.bin"]
    assert data_set.status() == "at hand"
    assert said(data_set) == TOKENS


def test_a_download_shows_its_progress_if_asked(owner, capfd):
    small(f"{owner}/whole").fetch(progress=False)
    assert capfd.readouterr().err == ""
    again = small(f"{owner}/whole")
    again.fetched.unlink()
    again.fetch(progress=True)
    assert "100%" in capfd.readouterr().err


def test_what_is_at_hand_is_not_fetched_again():
    data_set = small("http://127.0.0.1:9/never-asked")
    put_archives(data_set, TOKENS)
    assert data_set.fetch(progress=False) == "at hand"
    assert not data_set.fetched.exists()


@pytest.mark.attack("owners who send something else, break off, stall, or send far too much")
@pytest.mark.parametrize(
    ("kind", "path", "why"),
    [
        (small, "wrong", r"what lies in \S+/wrong is not the registered text .*; differ"),
        (small, "elsewhere", r"/elsewhere is not the registered text .*; differ: wiki\.train\.tokens"),
        (small, "page", "/page: not a whole zip file"),
        (small, "cut", "/cut: not a whole zip file"),  # a file cut off at its owner's
        (small, "broken-off", r"/broken-off: .*IncompleteRead"),  # a transfer that ends early
        (small, "nothing", "/nothing: 404"),
        (small, "silent", r"/silent: .*timed out"),
        (small, "stalls", r"/stalls: .*timed out"),
        (small, "encrypted", r"/encrypted: not a whole zip file \(.*password"),
        (small, "method", r"/method: not a whole zip file \(.*compression"),
        (small, "lzma", r"/lzma: not a whole zip file"),
        (small, "bomb", r"/bomb: wikitext-2/wiki\.train\.tokens unpacks to more than \d\d bytes"),
        (several, "bombs", r"/bombs/wiki\.train\.tokens\.gz: archive unpacks to more than \d\d bytes"),
        (several, "altered", r"/altered is not .*; differ: wiki\.train\.tokens, wiki\.valid"),
        (several, "half", r"/half/wiki\.train\.tokens\.gz: archive is not a whole \.gz file"),
    ],
)
def test_what_is_not_the_text_is_refused_and_removed(owner, places, kind, path, why, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(places / "temporary"))
    (places / "temporary").mkdir()
    data_set = kind(f"{owner}/{path}")
    with pytest.raises(DataMissing, match=why) as failure:
        data_set.fetch(progress=False, timeout=0.3)
    assert "SEPNB_DATA" in str(failure.value)
    assert files_below(places) == []
    assert data_set.status() == "missing"


def test_the_next_address_is_tried(owner):
    bad = [f"{owner}/{path}" for path in ("nothing", "page", "encrypted", "method", "lzma", "bomb")]
    assert said_after_fetch(small(*bad, f"{owner}/whole")) == TOKENS
    again = several(f"{owner}/half", f"{owner}/several")
    again.fetched.unlink()
    assert said_after_fetch(again) == TOKENS


def said_after_fetch(data_set: DataSet) -> dict[str, bytes]:
    data_set.fetch(progress=False)
    return said(data_set)


def test_no_server_at_all_is_a_clear_error():
    with pytest.raises(DataMissing, match=r"could not be fetched. Tried:\n  http://127\.0\.0\.1:9/x: "):
        small("http://127.0.0.1:9/x").fetch(progress=False, timeout=0.3)


@pytest.mark.attack("a fetched text that was cut or altered")
@pytest.mark.parametrize("bad", BAD)
def test_a_damaged_copy_is_reported_and_replaced(owner, bad):
    data_set = small(f"{owner}/whole")
    data_set.folder.mkdir(parents=True)
    data_set.fetched.write_bytes(BAD[bad])
    assert data_set.status() == "damaged"
    assert said_after_fetch(data_set) == TOKENS


@pytest.mark.attack("a data folder that is a file or a link in a circle")
@pytest.mark.parametrize(
    "spoil", [lambda place: place.write_text("a file"), lambda place: place.symlink_to(place)]
)
def test_a_data_folder_that_is_none_is_refused_before_anything_is_fetched(places, spoil):
    spoil(places / "data")
    data_set = small("http://127.0.0.1:9/never-asked")
    assert data_set.status() == "damaged"
    refused(r"small cannot be read from \S+/data/small: .*Errno", data_set.read, error=DataDamaged)
    with pytest.raises(DataDamaged, match=r"cannot be put into \S+/data/small \(.*; set SEPNB_DATA to a"):
        data_set.fetch(progress=False)


@pytest.mark.attack("an archive on the disk that unpacks to far too much")
def test_what_lies_in_the_data_folder_unpacks_to_no_more_than_is_registered():
    data_set = small()
    put_archives(data_set, TOKENS | {"wiki.test.tokens": bytes(10**6)})
    with pytest.raises(DataDamaged, match=r"small cannot be read .*test\.txt\.xz unpacks to more than \d\d"):
        data_set.read()


def test_every_owner_is_asked_over_an_encrypted_line_first():
    for name in registry.names():
        for address in registry.get(name).addresses[:1]:
            assert address.startswith("https://"), name


def test_a_set_that_comes_with_a_package_is_not_downloaded(monkeypatch):
    monkeypatch.setattr(containers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataMissing, match="installed with this project: sympy=="):
        registry.get("sympy").fetch(progress=False)


TEI = '<TEI xmlns="http://www.tei-c.org/ns/1.0"><text><body><div><p>{}</p></div></body></text></TEI>'


def test_novels_come_out_of_the_repository_archive(places):
    """On a small archive of the repository's form."""
    contents = {
        "level1/ENG1.xml": TEI.format("One \n novel.").encode(),
        "level1/ENG2.xml": TEI.format("Another.").encode(),
        "level0/ENG3.xml": b"not read",
        "README.md": b"not read",
    }
    archive = places / "archive.zip"
    archive.write_bytes(packed(contents, "ELTeC-eng-3db3b67"))
    assert containers.eltec_zip(archive) == {"ENG1.txt": b"One novel.\n", "ENG2.txt": b"Another.\n"}
    archive.write_bytes(packed({"level1/ENG1.xml": b"<p>"}, "ELTeC-eng-3db3b67"))
    with pytest.raises(containers.Unreadable, match=r"level1/ENG1\.xml is no TEI document"):
        containers.eltec_zip(archive)

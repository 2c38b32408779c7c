"""From TEI to text. The passages are taken from the owner's files (ELTeC-eng, level 1), shortened and put
together; what becomes of the first is what the registered novel has, which a test confirms."""

# ruff: noqa: RUF001 - the novels' own apostrophes

import pytest

from sepnb.data.containers import body_text

LYALL = """\
  <front><div type="titlepage"><p>THE AUTOBIOGRAPHY OF A SLANDER</p></div></front>
  <body>
    <div type="chapter">
      <head>MY FIRST STAGE</head>
      <quote><l>At last the tea came up, and so </l><l> With that our tongues began to
                go. </l><l> Now in that house you’re sure of knowing </l><l> The
                smallest scrap of news that’s going. </l><l> We find it there the
                wisest way </l><l> To take some care of what we
                     say.</l><p><hi>Recreation</hi>.  <hi>Jane
           Taylor</hi>.</p></quote>
      <p>I will now, without further preamble, begin the history of my life.</p>
      <milestone unit="supChapter" type="stars"/>
      <p>“I assure you, my dear Lena, Mr. Zaluski is nothing less than a
           Nihilist!”</p>
    </div>
  </body>"""
LYALL_TEXT = """\
MY FIRST STAGE

At last the tea came up, and so With that our tongues began to go. Now in that house you’re sure of \
knowing The smallest scrap of news that’s going. We find it there the wisest way To take some care of what \
we say.Recreation. Jane Taylor.

I will now, without further preamble, begin the history of my life.

“I assure you, my dear Lena, Mr. Zaluski is nothing less than a Nihilist!”
"""

NESTED = """\
  <body><pb n="14"/>
   <div type="part"><head>CHAPTER I.</head>
   <div type="chapter">
    <p>free liberty to drop in any where to "tiffin"—Burleigh being very Indianized; indeed,
     <pb n="15"/>so Indianized is it, and shoot <hi>at</hi> cormorants &amp; curlews</p>
    <p/>
    <p>
     <pb n="16"/>However, there was a certain old relative</p>
   </div></div>
  </body>
  <back><div type="notes"><note xml:id="N1">Double-dyed Tyrian wool</note></div></back>"""
NESTED_TEXT = """\
CHAPTER I.

free liberty to drop in any where to "tiffin"—Burleigh being very Indianized; indeed, so Indianized is it, \
and shoot at cormorants & curlews

However, there was a certain old relative
"""


def document(text: str) -> bytes:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<TEI xmlns="http://www.tei-c.org/ns/1.0">
<teiHeader><p>not this</p></teiHeader>
<text>{text}</text>
</TEI>""".encode()


@pytest.mark.parametrize(
    ("tei", "expected"), [(LYALL, LYALL_TEXT), (NESTED, NESTED_TEXT)], ids=["Lyall", "nested"]
)
def test_blocks_of_the_body_become_lines(tei, expected):
    assert body_text(document(tei)).decode() == expected


def test_the_expected_text_is_that_of_the_registered_novel(data_set):
    novel = data_set("eltec-eng").read()["ENG18872_Lyall.txt"].tobytes().decode()
    for paragraph in LYALL_TEXT.removesuffix("\n").split("\n\n"):
        assert f"\n\n{paragraph}\n\n" in f"\n\n{novel}"


def test_registered_novels_have_the_shape_that_the_conversion_gives(data_set):
    for name, data in data_set("eltec-eng").read().items():
        paragraphs = data.tobytes().decode().removesuffix("\n").split("\n\n")
        assert all(paragraph == " ".join(paragraph.split()) != "" for paragraph in paragraphs), name


TENFOLD = "".join(f'<!ENTITY e{depth} "{10 * f"&e{depth - 1};"}">' for depth in range(1, 10))
GROWING = f'<!DOCTYPE a [<!ENTITY e0 "words">{TENFOLD}]><TEI>&e9;</TEI>'.encode()
"""A kilobyte that stands for gigabytes."""


@pytest.mark.attack("XML that is broken, of another kind, or made to grow without end")
@pytest.mark.parametrize(
    ("xml", "why"),
    [
        (b"<TEI>", "not well-formed XML"),
        (GROWING, "not well-formed XML"),
        (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><TEI>&b;</TEI>', "not well-formed XML"),
        (b"<TEI><text><body/></text></TEI>", "no <text><body> of the TEI namespace"),
    ],
)
def test_what_is_no_tei_is_refused(xml, why):
    with pytest.raises(ValueError, match=why):
        body_text(xml)

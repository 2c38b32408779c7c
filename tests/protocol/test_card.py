"""A card says the same as JSON, Markdown, HTML and as a figure, whatever a model is called."""

import json
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from sepnb.encodings import PositionInterpolation, YaRN
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.protocol import Card, probe
from sepnb.protocol.adapters import ours
from sepnb.streams import Streams

from .shapes import EVERY, TIMES, L, looking_back, repeating

LABEL = "<script>alert(1)</script> | a $x_{$"


@pytest.fixture(scope="module")
def card() -> Card:
    model = looking_back(3 * L)
    model.__name__ = LABEL
    return probe(model, repeating(3 * L), trained_length=np.int64(L), times=TIMES)


def test_json_is_strict_and_has_the_four_verdicts_with_their_numbers(card):
    data = json.loads(card.to_json(), parse_constant=pytest.fail)
    for name in ("survives", "uses", "quality", "price"):
        assert data[name]["verdict"] == getattr(card, name).verdict
    assert set(data["survives"]["numbers"]) == {"gap/2x", "gap/4x"}
    assert data["meta"]["windows"] == 30 and data["meta"]["trained_length"] == L
    stops = [row["stop"] for row in data["curve"]]
    assert stops == sorted(set(stops)) and stops[-1] == 4 * L and L in stops


def test_markdown_has_every_verdict_and_every_limit_on_a_line_of_its_own(card):
    page = card.to_markdown()
    for name, one in [*card.four.items(), *card.axes.items()]:
        assert f"| {name} | {one.verdict} |" in page
    assert all(f"- {limit}"[:40] in page for limit in card.meta["limits"])
    assert "<script>" not in page and "\\| a" in page


@pytest.mark.attack("a model whose name is a script")
def test_html_asks_for_nothing_and_runs_nothing(card):
    page, tags = card.to_html(), []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            tags.append(tag)
            assert not {"src", "onload"} & dict(attributes).keys()

    Tags().feed(page)
    assert "svg" in tags and not {"script", "link", "iframe", "img"} & set(tags)
    assert "&lt;script&gt;alert(1)" in page


def test_the_figure_draws_both_curves_and_the_trained_length(card):
    fig = card.figure()
    ax, words = fig.axes
    lines = [line.get_xdata() for line in ax.get_lines()]
    assert sorted(len(x) for x in lines) == [2, len(card.curve), len(card.curve)]
    said = [text.get_text() for text in words.texts]
    assert said[:4] == ["survives", "held", "uses", "held"]
    assert f"trained length {L}" in [text.get_text() for text in ax.texts]
    plt.close(fig)


def test_every_form_of_a_card_names_what_the_model_was_read_under():
    """A reference is named with its own, and the figure breaks the line before it would leave it out."""
    torch.manual_seed(0)
    config = TransformerConfig(Streams.dense(8), n_layers=1, n_heads=2, encoding="rope")
    model = LanguageModel(config, 2 * EVERY)
    read = ours(model.extended(extension=YaRN(8.0, L)), "somebody's long novels.safetensors")
    slower = model.extended(extension=PositionInterpolation(4.0))
    card = probe(read, repeating(L), trained_length=L, times=(1, 2), reference=slower)
    name = "sepnb, rope, yarn with factor 8, adapter somebody's long novels.safetensors"
    data = json.loads(card.to_json())["meta"]
    assert data["under"] == {
        "extension": {"name": "yarn", "factor": 8.0, "original_length": L}
        | {"beta_fast": 32, "beta_slow": 1, "ramp": "dimension"},
        "adapter": "somebody's long novels.safetensors",
    }
    assert card.to_markdown().startswith(f"# Past the trained length: {name}\n")
    assert "beside sepnb, rope, position-interpolation with factor 4" in card.to_markdown()
    fig = card.figure()
    assert " ".join(fig.axes[0].get_title("left").split()) == name
    plt.close(fig)

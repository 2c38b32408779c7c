"""The description of SeqPE: what it says of itself, what it builds and what it refuses."""

import dataclasses

import pytest
import torch

from sepnb import encodings
from sepnb.encodings import Site
from sepnb.encodings.base import Heads
from sepnb.models import TransformerConfig
from sepnb.seqpe import SeqPE
from sepnb.seqpe.encoding import SITES
from sepnb.streams import Streams


@pytest.mark.parametrize("site", SITES)
def test_each_site_builds_one_module_and_a_record_names_every_option(site):
    encoding = SeqPE(site=site, digits=(2, 3), dims=2, std=0.02, dropout=0.1, class_token=True)
    at_input, at_query_key = encoding.at_input(8, 64), encoding.at_query_key(encodings.Heads(width=4))
    assert (at_input is None) == (site != "input") and (at_query_key is None) == (site == "input")
    assert encoding.sites == {Site.INPUT if site == "input" else Site.QUERY_KEY}
    resolved = encoding.resolved()
    options = {key: value for key, value in resolved.items() if key != "name"}
    assert encodings.build(resolved["name"], **options) == encoding
    assert resolved.keys() == {"name"} | {f.name for f in dataclasses.fields(encoding)} - {"heads"}
    assert encoding.axes == (2,)
    assert not {"std", "dropout"} & SeqPE(site=site).resolved().keys(), "older records keep their keys"


def test_the_encoder_is_the_one_that_the_options_describe():
    settings = {"width": 12, "layers": 3, "heads": 2, "base": 7, "digits": (2, 3), "dims": 2}
    settings |= {"dropout": 0.2}
    encoder = SeqPE(site="input", **settings).at_input(20, 64).embeddings.encoder
    config = encoder.transformer.config
    found = (config.streams.d_model, config.n_layers, config.n_heads, encoder.base, encoder.digits)
    assert (*found, encoder.dims, encoder.output.out_features) == (12, 3, 2, 7, (2, 3), 2, 20)
    assert config.dropout == 0.2
    at_query_key = SeqPE(**settings).at_query_key(encodings.Heads(width=4))
    assert at_query_key.embeddings.encoder.output.out_features == 12


@pytest.mark.parametrize("site", ["score", "add", "multiply"])
def test_a_map_is_made_for_the_heads_that_there_are(site):
    heads = Heads(width=8, layers=((0, 1, 2, 3), (2, 3)), shared=2)

    def widths(per_layer: bool) -> list[tuple[int, int]]:
        module = SeqPE(site=site, per_layer=per_layer).at_query_key(heads)
        pairs = zip(module.queries, module.keys, strict=True)
        return [(q.out_features, k.out_features) for q, k in pairs]

    assert widths(False) == [(32, 16)]
    assert widths(True) == [(32, 16), (16, 8)]


def test_two_streams_of_positions_hold_no_heads_that_nothing_reads():
    """Of a constant pos stream no head is built, and none of its columns is made."""
    from sepnb.models import LanguageModel

    config = TransformerConfig(
        Streams(pos=8, sem=24), 2, 4, ("sinusoidal", "seqpe"), pos_stream="constant", mode="strict"
    )
    (module,) = LanguageModel(config, 11).transformer.query_key_encodings
    assert module.asking == ((1, 2, 3),) and module.queries[0].out_features == 24


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"heads": 5}, ValueError, "5 heads do not divide the encoder's width 32"),
        ({"digits": (2, 3)}, ValueError, r"digits=\(2, 3\) for 1 coordinates"),
        ({"digits": 30}, ValueError, "30 digits of base 10 write numbers beyond int64"),
        ({"site": "input", "per_layer": True}, ValueError, "per_layer is for the maps to queries and keys"),
        ({"site": "add", "factor": 0.5}, ValueError, "factor=0.5 is for the term of the score"),
        ({"class_token": True}, ValueError, "with dims=1 position 0 is the first token of a text"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, error, message, unhooked):
    with pytest.raises(error, match=message):
        SeqPE(**options)


def test_building_a_description_builds_no_network(monkeypatch):
    monkeypatch.setattr(torch.nn.Linear, "__init__", lambda *_, **__: pytest.fail("a map was built"))
    encodings.build("seqpe", site="multiply", per_layer=True)

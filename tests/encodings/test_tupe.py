"""The untied position term: its columns, and the separated model that is a dense one with this term."""

import torch

from sepnb.encodings import Heads, Tupe
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from .drawn import F64, loud

SIZES = {"n_layers": 2, "max_length": 16}
UNTIED = {"mode": "strict", "query_key": "untied", "pos_stream": "constant", "encoding": "sinusoidal"}
SEPARATED = TransformerConfig(Streams(pos=8, sem=24), n_heads=4, **UNTIED, **SIZES)
DENSE = TransformerConfig(Streams.dense(24), n_heads=3, encoding=Tupe(columns=8), **SIZES)


def weights_of_the_twin(separated: LanguageModel) -> dict[str, torch.Tensor]:
    """Those of the dense model as wide as its sem stream: all that the separated one has, and no more."""
    own = {}
    for name, weight in separated.state_dict().items():
        if name.endswith("query_key.0.weight"):  # the first columns read positions, the others content
            own[name] = weight[:, 8:]
            of_query, of_key = weight[:, :8].chunk(2)
            term = name.replace("query_key.0.weight", "terms.0.")
            own |= {f"{term}query.weight": of_query, f"{term}key.weight": of_key}
        elif name.endswith(".pos"):
            own[name.replace("attention_norm.", "attention.terms.0.").removesuffix(".pos")] = weight
        else:
            own[name] = weight
    return own


def test_an_untied_model_with_a_constant_position_stream_is_a_dense_one_with_this_term():
    torch.manual_seed(0)
    separated = loud(LanguageModel(SEPARATED, 11).to(F64))
    dense = LanguageModel(DENSE, 11).to(F64)
    dense.load_state_dict(weights_of_the_twin(separated))
    assert dense.parameter_counts() == separated.parameter_counts()
    tokens = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(1))
    for at in (torch.arange(9), torch.arange(9) + 5000, torch.tensor([0, 1, 5, 6, 7, 40, 41, 42, 90])):
        torch.testing.assert_close(dense(tokens, at), separated(tokens, at), rtol=0, atol=1e-10)
    assert (dense(tokens, at) - dense(tokens)).abs().max() > 1e-3


def test_as_many_columns_as_the_position_stream_of_a_separated_model_unless_they_are_given():
    assert Tupe().at_query_key(Heads(model_width=128, width=32)).more == 32
    assert Tupe(columns=6).at_query_key(Heads(model_width=128, width=32)).more == 6

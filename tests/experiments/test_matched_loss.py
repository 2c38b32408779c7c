"""At matched loss: what is compared, how a run that was killed goes on, and what is read at the key bytes."""

import dataclasses

import numpy as np
import pytest

from sepnb import experiments
from sepnb.evaluation import evaluate
from sepnb.evaluation.key_tokens import drawn_bytes
from sepnb.experiments import key_bytes, matched_loss
from sepnb.experiments import language_modelling as lm
from sepnb.records.store import Store

from .smoke_runs import made, smoke, texts_of

MATCHED, SELECTOR = experiments.get("matched_loss"), experiments.get("key_bytes_small")
FEW = dataclasses.replace(matched_loss.BEYOND["smoke"], documents=2)


def test_the_list_of_a_record_is_that_on_which_models_are_scored(one_thread, tmp_path, monkeypatch):
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    selector = dataclasses.replace(SELECTOR, sizes=lm.SIZES | {"laptop": lm.SIZES["smoke"]})
    monkeypatch.setattr(key_bytes, "EXPERIMENT", selector)
    monkeypatch.setattr(key_bytes, "BEYOND", {"laptop": FEW, "smoke": FEW})
    published, digest_of = key_bytes.published, key_bytes.digest_of
    assert published("laptop") is None and digest_of("laptop") == key_bytes.DRAWN
    (config,) = selector.grid("laptop")
    with pytest.raises(ValueError, match="run `sepnb run key_bytes_small --profile laptop` and commit"):
        key_bytes.require(config)
    metrics, rows = config.of(key_bytes.Chosen)(config, config.build())
    assert metrics["key/window"] > metrics["key/long"]
    Store(tmp_path / "results").write(made(config, rows, **metrics))
    keys = published("laptop")
    assert sum(map(len, keys.values())) == metrics["key_bytes"]
    assert digest_of("laptop") not in (key_bytes.DRAWN, None) and digest_of("smoke") == "drawn"
    key_bytes.require(config)


def test_what_is_read_at_key_bytes_is_what_the_plain_formulas_give(one_thread):
    config = smoke("matched_loss", "rope", beyond=FEW)
    model, texts = config.build(), texts_of(config)
    metrics, rows = config.of(key_bytes.AtKeyBytes)(config, model)
    held, length = texts.part(config), texts.beyond.length
    bits = evaluate(model, held.tokens).bits
    marked = drawn_bytes(bits.shape, share=key_bytes.SHARE, first=length)
    assert metrics["key/long"] == pytest.approx(bits[marked].mean(), abs=1e-6)
    rest = ~marked
    rest[:, :length] = False
    assert metrics["rest/long"] == pytest.approx(bits[rest].mean(), abs=1e-6)
    both = (
        metrics[f"key/{name}"] * marked.sum() + metrics[f"rest/{name}"] * rest.sum()
        for name in ("replaced", "long")
    )
    far = np.subtract(*both) / (marked.sum() + rest.sum())
    bins = [(row["stop"] - row["start"], row["bits_per_byte"]) for row in rows if row["kind"] == "gain"]
    assert far == pytest.approx(np.average([b for _, b in bins], weights=[n for n, _ in bins]), abs=1e-6)
    inside = held.tokens[:, : length + 1]
    near = [
        evaluate(model, inside[:, i - 7 : i + 2]).bits[:, -1] - evaluate(model, inside).bits[:, i]
        for i in range(8, length)
    ]
    assert metrics["beyond/8"] == pytest.approx(np.mean(near), abs=1e-5)


@pytest.mark.parametrize("method", ["learned", "untied-constant"])
def test_a_run_at_matched_loss_has_what_its_claims_ask_for(one_thread, method):
    record = MATCHED.run(smoke("matched_loss", method, beyond=FEW))
    wanted = {"beyond/8", "key/long", "key/replaced", "key/shuffled", "key/window", "gain/8x", "shuffled/8x"}
    wanted |= {f"gap/{rule}/8x" for rule in ("fourier", "clamp")} if method == "learned" else {"native/8x"}
    assert wanted <= record.metrics.keys()

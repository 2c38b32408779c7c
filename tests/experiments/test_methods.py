"""Methods: one name, one model and training, in the whole book; each differs from its base as it says."""

import pytest

from sepnb import experiments
from sepnb.claims import recall
from sepnb.experiments import images, ladder_methods, methods
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.methods import Method, listed, run_of, series
from sepnb.experiments.run import Run
from sepnb.records.store import canonical

from .smoke_runs import differing, grid_of

OF_TEXTS = dict(methods._BOOK[1])
"""Every method of texts that an experiment lists."""
TWINS = (
    {"seqpe", "dense-seqpe-score"},
    {"seqpe-input", "dense-seqpe"},
    {"keys-16", "shaw-keys"},
    {"sinusoidal", "sinusoidal-weak", "sinusoidal-strong"},
    {"sinusoidal-quarter", "sinusoidal-quarter-strong"},
)
"""Of the first pairs each has its own experiment, seeds and swept rate, and on some size the same model. The
last two sets differ in how large their content is drawn."""
CHANGED = [name for name, one in OF_TEXTS.items() if one.base]


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_no_name_is_two_models_in_the_whole_book(profile):
    """Of all grids of one size: a name has one model and one training, but for what a sweep chooses, its rate
    and the scale of its tables or of its content, and for its schedule."""
    found: dict[tuple, dict[str, set[str]]] = {}
    for name in experiments.names():
        for run in grid_of(name, profile):
            if not isinstance(run, Run) or not isinstance(run.data, lm.TextConfig):
                continue
            if run.base is not None and run.base.method != run.method:
                continue  # these read one model in several ways, which are their methods
            settings = run.resolved()
            del settings["model"]["embedding_std"]
            for encoding in settings["model"]["encoding"]:
                if encoding["name"] == "learned":
                    del encoding["std"]
            training = {k: v for k, v in settings["training"].items() if k not in ("learning_rate", "steps")}
            size = (settings["model"]["n_layers"], settings["model"]["n_heads"], training["batch_size"])
            if run.method.endswith("-long"):
                continue  # trained at the long length: another size
            what = canonical({"model": settings["model"], "training": training})
            found.setdefault(size, {}).setdefault(run.method, set()).add(what)
    for of_size in found.values():
        assert {name for name, models in of_size.items() if len(models) > 1} == set()
        alike: dict[str, set[str]] = {}
        for name, (one,) in of_size.items():
            alike.setdefault(one, set()).add(name)
        twice = [names for names in alike.values() if len(names) > 1]
        assert all(names in TWINS for names in twice), twice


def test_the_book_refuses_a_name_that_another_method_has_and_a_base_that_is_none():
    for axes in (1, 2):
        with pytest.raises(ValueError, match="two methods are called 'none'; a name is unique"):
            listed(Method("none", "another"), axes=axes)
    with pytest.raises(ValueError, match="the base 'ropes' of 'quaternions' is no method; list it before"):
        listed(Method("quaternions", "says", "ropes"), axes=7)
    with pytest.raises(ValueError, match=r"unknown method 'ropes'; did you mean rope"):
        methods.get("ropes")
    with pytest.raises(ValueError, match="unknown method 'rope'"):
        methods.get("rope", axes=2)
    for name in ("extrapolation", "recipes", "encodings", "shaw_clip", "inside"):
        with pytest.raises(ValueError, match=r"unknown method 'rope-lung'; did you mean rope-long"):
            experiments.get(name).config("smoke", "rope-lung", 1)
    with pytest.raises(ValueError, match="'alibi' has no learning rate in seqpe_stream: neither it"):
        experiments.get("seqpe_stream").config("smoke", "alibi", 1)


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_a_method_differs_from_its_base_in_the_fields_that_it_declares(profile):
    for name in CHANGED:
        method = OF_TEXTS[name]
        if name in ladder_methods.METHODS and not ladder_methods.fits(name, profile):
            continue
        own, base = (run_of("x", profile, one, 1, 1e-3) for one in (name, method.base))
        declared = {f"model.{key}" for key in method.model} | {f"training.{k}" for k in method.training}
        changed = {".".join(key.split(".")[:2]) for key in differing(own, base)} - {"method"}
        assert method.says and changed and changed <= declared, name


def test_facets_are_read_off_the_model_and_no_two_methods_but_of_known_pairs_share_them():
    """Widths that differ, and options that are of no encoding, are told apart by the configs alone."""
    wide = methods.facets("separated-content-gap-wide")
    assert wide.streams == "separated" and wide.size == "own" and wide.encoding == ("sinusoidal", "phase")
    assert wide.positions == "position-gap" and methods.facets("rope-gaps").positions == "true-gap"
    assert methods.facets("rope-long").size == "long" and methods.facets("strict-learned").streams == "strict"
    assert methods.facets("concatenated-learned").streams == "concatenated"
    assert methods.facets("untied-constant").score
    same: dict[methods.Facets, set[str]] = {}
    for name in OF_TEXTS:
        same.setdefault(methods.facets(name), set()).add(name)
    known = (*TWINS, {"separated-torus", "separated-sinusoidal-fast"})  # a short period, of any length
    alike = [names for names in same.values() if len(names) > 1 and names not in known]
    assert all(methods.facets(name).size == "own" for names in alike for name in names), alike


def test_a_twin_differs_in_its_streams_alone_and_the_claims_compare_twins():
    pairs = [pair.split(" - ") for pair in recall.TWINS.split(", ")]
    pairs += [sorted(best[:2]) for best in recall.BEST.values()]
    for pair in pairs:
        separated, dense = sorted(pair)
        assert methods.twin(separated) == dense and methods.twin(dense, "separated") == separated
        of, other = methods.facets(separated), methods.facets(dense)
        assert of == other._replace(streams="separated")
    dense, wide = recall.EQUALS.split(" - ")
    assert methods.twin(wide) == dense
    assert (
        methods.twin("strict-gap") == "sinusoidal-gap" and methods.twin("concatenated-learned") == "learned"
    )
    for name in ("rope", "separated-sinusoidal-constant", "separated-sinusoidal-long", "separated-phase"):
        with pytest.raises(ValueError, match=f"'{name}' has no twin that is"):
            methods.twin(name, "separated" if name == "rope" else "dense")


def test_a_method_of_several_axes_has_the_name_of_its_form_on_one():
    """What is called alike is the same idea, and its base too."""
    for name in ("none", "sinusoidal", "seqpe", "seqpe-plain"):
        assert methods.get(name, 2) is images.METHODS[name] and series(name, 2)[-1].name == "none"

"""What published records tell twice they tell alike."""

from sepnb import experiments
from sepnb.companion.check import contradictions, published
from sepnb.records.provenance import history
from sepnb.records.store import Store


def test_no_published_record_contradicts_itself_its_data_or_the_history() -> None:
    every = [experiments.get(name) for name in experiments.names()]
    pairs = {(one, profile) for one in every for profile in published.PROFILES if one.grid(profile)}
    registered, commits = published.digests(pairs), history()
    told = {
        (profile, name, key): why
        for (name, profile), data in registered.items()
        for key, record in Store().load(profile, name).items()
        if (why := contradictions.of(record, data, commits))
    }
    assert told == {}

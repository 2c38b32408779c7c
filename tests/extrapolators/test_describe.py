"""What a table looks like, against definitions written out."""

import math

import numpy as np
import pytest
import torch

from sepnb.extrapolators import Description, build, describe

F64 = torch.float64
TOPS = [1, 2, 4, 8, 16, 32]


def test_the_sizes_are_those_of_the_entries_the_steps_and_the_rows(table):
    rows = table(7, 3)
    found, entries = describe(rows), rows.numpy()
    assert (found.length, found.width) == (7, 3)
    assert found.std == pytest.approx(np.std(entries))
    assert found.median_step == pytest.approx(np.median(np.linalg.norm(np.diff(entries, axis=0), axis=1)))
    assert found.mean_row_norm == pytest.approx(np.linalg.norm(entries, axis=1).mean())


@pytest.mark.parametrize("length", [40, 41, 128])
def test_the_energy_of_the_strongest_frequencies_is_what_fourier_gets_right(table, length):
    rows = table(length, 6)
    found = describe(rows).frequency_energy
    assert list(found) == TOPS
    for top, share in found.items():
        kept = build("fourier", n_components=min(top, length // 2 + 1)).reconstruction(rows)
        missed = float((kept - rows).square().sum() / rows.square().sum())
        assert share == pytest.approx(1 - missed, abs=1e-12)


def test_the_energy_of_the_first_principal_components_is_their_share_of_the_variance(table):
    rows = table(50, 6)
    variances = np.sort(np.linalg.eigvalsh(np.cov(rows.numpy().T)))[::-1]
    found = describe(rows).component_energy
    assert list(found) == TOPS
    for top, share in found.items():
        assert share == pytest.approx(variances[:top].sum() / variances.sum())
    assert found[8] == pytest.approx(1) and found[4] < 1


def test_a_constant_table_has_a_mean_and_no_variance():
    found = describe(torch.full((8, 2), 0.25))
    assert found.frequency_energy[1] == pytest.approx(1) and math.isnan(found.component_energy[1])
    assert found.std == found.median_step == 0


def test_the_dtype_and_the_gradient_of_the_table_do_not_matter(table):
    single = table(20, 4, dtype=torch.float32)
    assert describe(single.clone().requires_grad_()) == describe(single.to(F64))


def test_every_number_has_a_line_for_a_data_frame(table):
    found = describe(table(20, 4))
    lines = dict(found.rows())
    assert isinstance(found, Description) and len(lines) == len(found.rows()) == 16
    assert lines["energy of the top 8 frequencies"] == found.frequency_energy[8]
    assert lines["median step / mean row norm"] == found.median_step / found.mean_row_norm


def test_a_table_of_zeros_is_refused():
    with pytest.raises(ValueError, match="every entry of the table is 0"):
        describe(torch.zeros(4, 2))

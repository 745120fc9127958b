"""Similarities made of features, sequences and structures, against their formulas and their hosts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.data.described.tables import as_similarity
from air_recsys.dti import feature_similarity, sequence_similarity, smiles_similarity
from air_recsys.exceptions import DataError, DataWarning

IDS = ["a", "b", "c", "d"]
SMILES = {"ethanol": "CCO", "propanol": "CCCO", "benzene": "c1ccccc1", "toluene": "Cc1ccccc1"}


@pytest.mark.parametrize("kind", ["tanimoto", "cosine", "rbf"])
def test_every_kind_is_a_similarity(kind: Any) -> None:
    table = pd.DataFrame(np.random.default_rng(0).poisson(1.0, (4, 9)), IDS)
    found = feature_similarity(table, kind)
    np.testing.assert_array_equal(as_similarity("s", found, np.array(IDS)), found)
    one, two = table.to_numpy(float)[:2]
    expected = {
        "tanimoto": one @ two / (one @ one + two @ two - one @ two),
        "cosine": one @ two / np.linalg.norm(one) / np.linalg.norm(two),
    }
    if kind in expected:
        assert found.loc["a", "b"] == pytest.approx(expected[kind])


def test_the_radial_one_does_not_see_the_units_of_columns() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 3)), IDS)
    pd.testing.assert_frame_equal(feature_similarity(table), feature_similarity(table * [1, 1000, 0.1] + 5))
    assert np.median(-np.log(feature_similarity(table).to_numpy()[np.triu_indices(4, 1)])) == pytest.approx(1)
    constant = pd.DataFrame(np.full((4, 2), 3.0), IDS)
    assert (feature_similarity(constant) == 1).all(axis=None)


def test_fingerprints_are_compared_by_tanimoto_and_empty_ones_are_like_nothing() -> None:
    bits = pd.DataFrame([[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1]], IDS)
    found = feature_similarity(bits)
    assert found.loc["c"].tolist() == [0, 0, 1, 0]
    assert found.loc["a"].tolist() == pytest.approx([1, 1, 0, 1 / 3])


def test_a_number_among_bits_is_told() -> None:
    bits = pd.DataFrame([[1, 0, 5291], [1, 1, 12]], ["a", "b"], ["b1", "b2", "CID"])
    with pytest.warns(DataWarning, match=r"takes kind='rbf': all columns but \['CID'\] are 0 or 1"):
        feature_similarity(bits)


def test_sequences_are_compared_by_their_words() -> None:
    found = sequence_similarity(pd.Series({"a": "MKVMKV", "b": "mkv", "c": "GGG"}), k=3)
    assert found.loc["a", "b"] == pytest.approx(2 / np.sqrt(4 + 1 + 1))  # MKV twice, KVM, VMK
    assert found.loc["a", "c"] == 0
    assert sequence_similarity({"a": "MKV AGI\nLL*", "b": "MKVAGILL"}).loc["a", "b"] == pytest.approx(1)
    with pytest.warns(DataWarning, match=r"1 sequences are more than a tenth X.*\['c'\]"):
        sequence_similarity({"a": "MKVAGILL", "c": "MKXX"})


def test_alignments_are_scored_by_smith_and_waterman() -> None:
    pytest.importorskip("parasail")
    found = sequence_similarity({"a": "MKVLUAGIVG", "b": "MKVLCAGIVG", "c": "WWMKVLCA", "d": "PPPP"}, aligned=True)
    np.testing.assert_array_equal(as_similarity("s", found, np.array(IDS)), found)
    own = 5 + 5 + 4 + 4 + 9 + 4  # of MKVLCA by BLOSUM62
    whole = own + 6 + 4 + 4 + 6, own + 2 * 11
    assert found.loc["a", "b"] == pytest.approx(1)
    assert found.loc["b", "c"] == pytest.approx(own / np.sqrt(whole[0] * whole[1]))
    assert found.loc["a", "d"] == 0


def test_bases_beside_amino_acids_are_told() -> None:
    with pytest.warns(DataWarning, match=r"1 of 2 sequences are bases, the others amino acids: \['b'\]"):
        sequence_similarity({"a": "MKVLMKVLW", "b": "ACGT" * 10})


def test_structures_are_compared_as_rdkit_compares_them() -> None:
    pytest.importorskip("rdkit")
    from rdkit import Chem, DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    maker = GetMorganGenerator(radius=2, fpSize=2048)
    prints = [maker.GetFingerprint(Chem.MolFromSmiles(text)) for text in SMILES.values()]
    expected = [[DataStructs.TanimotoSimilarity(one, two) for two in prints] for one in prints]
    np.testing.assert_allclose(smiles_similarity(SMILES), expected)
    with pytest.warns(
        DataWarning, match=re.escape("smiles: 1 of 5 do not parse and are similar to no other: row 5 ('bad')")
    ):
        assert smiles_similarity(SMILES | {"bad": "C1CC"})["bad"].tolist() == [0, 0, 0, 0, 1]
    with pytest.raises(DataError, match="none that parses"):
        smiles_similarity({"bad": "C1CC"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: feature_similarity([[1, 2]]), "a DataFrame of features, found list"),  # type: ignore[arg-type]
        (lambda: feature_similarity(pd.DataFrame([[1, np.nan]])), "finite features of each row, found 1"),
        (lambda: feature_similarity(pd.DataFrame([["x"]])), "features must be numbers, found 'x'"),
        (lambda: feature_similarity(pd.DataFrame([[-1.0]]), "tanimoto"), "at least 0 for kind='tanimoto', found -1"),
        (lambda: feature_similarity(pd.DataFrame([[1], [2]], ["a", "a"])), "each id once, found again: ['a']"),
        (lambda: sequence_similarity({"a": "MK"}), "3 letters or more, found 'MK' for 'a'"),
        (lambda: sequence_similarity({"a": 3}), "sequences as text, found 3 for 'a'"),  # type: ignore[dict-item]
        (lambda: sequence_similarity({}), "expected sequences, found none"),
        (lambda: sequence_similarity(["MKV"]), "expected sequences as a Series by id or a mapping of ids, found list"),  # type: ignore[arg-type]
        (lambda: sequence_similarity({"a": "MKV>P2GG"}), "sequences of letters, found '>' in that of 'a'"),
        (lambda: sequence_similarity({"a": "MKV", "b": "MK--V"}), "sequences of letters, found '-' in that of 'b'"),
        (lambda: sequence_similarity({"a": "MET SER ARG LEU"}), "found codes of three in that of 'a'"),
        (lambda: sequence_similarity({"a": "MKVL", "b": "MetSerArg-Leu"}), "found codes of three in that of 'b'"),
        (lambda: smiles_similarity({"a": "[C][C][O]", "b": "[C][N]"}), "found '[C][C][O]', as of SELFIES"),
        (lambda: feature_similarity(pd.DataFrame({"bits": [101e9, 11e9]})), "a column for each bit, found 'bits'"),
    ],
)
def test_what_cannot_be_compared_is_refused(make: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        make()

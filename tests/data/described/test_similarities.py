"""Kernels of features, sequences and structures, against their formulas and their hosts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.data.described.sides import Described
from air_recsys.data.described.tables import as_similarity
from air_recsys.exceptions import DataError, DataWarning

IDS = ["a", "b", "c", "d"]
SMILES = {"ethanol": "CCO", "propanol": "CCCO", "benzene": "c1ccccc1", "toluene": "Cc1ccccc1"}


def kernels(**given: Any) -> dict[str, pd.DataFrame]:
    """The kernels of what is given by one name, as tables."""
    (content,) = given.values()
    ids = list(content.index if isinstance(content, pd.DataFrame | pd.Series) else content)
    found = Described.of("row", given, np.array(ids))
    return {name: pd.DataFrame(each, ids, ids) for name, each in zip(found.kernels, found.similarities(), strict=True)}


def of_numbers(table: pd.DataFrame) -> pd.DataFrame:
    return kernels(features=table)["features"]


@pytest.mark.parametrize("most", [1, 9], ids=["tanimoto", "rbf"])
def test_every_kind_is_a_similarity(most: int) -> None:
    table = pd.DataFrame(
        np.random.default_rng(0).poisson(2.0, (5, 9))[[0, 1, 2, 4]].clip(max=most) + (most > 1) / 2, IDS
    )
    found = of_numbers(table)
    np.testing.assert_array_equal(as_similarity("s", found, np.array(IDS)), found)
    one, two = table.to_numpy()[:2]
    if most == 1:
        assert found.loc["a", "b"] == pytest.approx(one @ two / (one @ one + two @ two - one @ two))


def test_the_radial_one_does_not_see_the_units_of_columns() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 3)), IDS)
    np.testing.assert_allclose(of_numbers(table), of_numbers(table * [1, 1000, 0.1] + 5))
    assert np.median(-np.log(of_numbers(table).to_numpy()[np.triu_indices(4, 1)])) == pytest.approx(1)
    assert (of_numbers(pd.DataFrame(np.full((4, 2), 3.0), IDS)) == 1).all(axis=None)


def test_fingerprints_are_compared_by_tanimoto_and_empty_ones_are_like_nothing() -> None:
    found = of_numbers(pd.DataFrame([[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 1, 1]], IDS))
    assert found.loc["c"].tolist() == [0, 0, 1, 0]
    assert found.loc["a"].tolist() == pytest.approx([1, 1, 0, 1 / 3])


def test_a_number_among_bits_is_told() -> None:
    bits = pd.DataFrame([[1, 0, 5291], [1, 1, 12]], ["a", "b"], ["b1", "b2", "CID"])
    with pytest.warns(DataWarning, match=r"all columns but \['CID'\] are 0 or 1, and all are numbers"):
        of_numbers(bits)


def test_sequences_are_compared_by_their_words() -> None:
    found = kernels(sequences=pd.Series({"a": "MKVMKV", "b": "mkv", "c": "GGG"}))["words"]
    assert found.loc["a", "b"] == pytest.approx(2 / np.sqrt(4 + 1 + 1))  # MKV twice, KVM, VMK
    assert found.loc["a", "c"] == 0
    assert kernels(sequences={"a": "MKV AGI\nLL*", "b": "MKVAGILL"})["words"].loc["a", "b"] == pytest.approx(1)
    with pytest.warns(DataWarning, match=r"1 row_similarity\['sequences'\] are more than a tenth X.*\['c'\]"):
        kernels(sequences={"a": "MKVAGILL", "c": "MKXX"})


def test_motifs_are_of_classes_and_what_one_sequence_has_alone_does_not_count() -> None:
    sequences = {"a": "MKVLSTE" + "W" * 20, "b": "LRIITSQ", "c": "GHGHGHGH", "d": "GG"}
    found = kernels(sequences=sequences)["motifs"]
    assert found.loc["a", "b"] == pytest.approx(1)  # M L, K R, V I, L I, S T, T S, E Q
    assert found.loc["a", "c"] == found.loc["c", "d"] == 0
    known = Described.of("row", {"sequences": sequences}, np.array(list(sequences)))
    later = known.later("row", {"sequences": {"new": "MKVLSTE" + "P" * 9}}, np.array([*sequences, "new"]), 4)
    assert known.kernels["motifs"].similarity(later.kernels["motifs"])[0, :2] == pytest.approx(1)


def test_long_words_are_of_letters_and_of_several_sequences() -> None:
    sequences = {"a": "MKVLSTEAW", "b": "MKVLSTEAC", "c": "LRIITSQAW", "d": "GHGHGHGH"}
    found = kernels(sequences=sequences)["long words"]
    assert found.loc["a", "b"] == pytest.approx(1)  # MKVLST, KVLSTE, VLSTEA; the ends are of one each
    assert found.loc["a", "c"] == found.loc["a", "d"] == 0
    known = Described.of("row", {"sequences": sequences}, np.array(list(sequences)))
    ids, new = np.array([*sequences, "new"]), {"sequences": {"new": "PPPMKVLSTEPPP"}}
    later = known.later("row", new, ids, 4).kernels["long words"]
    assert known.kernels["long words"].similarity(later)[0] == pytest.approx([(2 / 3) ** 0.5] * 2 + [0, 0])
    older = known._replace(kernels={name: known.kernels[name] for name in ("words", "motifs")})
    assert list(older.later("row", new, ids, 4).kernels) == ["words", "motifs"]


def test_bases_beside_amino_acids_are_told() -> None:
    with pytest.warns(DataWarning, match=r"1 of 2 .* are bases, the others amino acids: \['b'\]"):
        kernels(sequences={"a": "MKVLMKVLW", "b": "ACGT" * 10})


def test_structures_are_compared_as_rdkit_compares_them() -> None:
    pytest.importorskip("rdkit")
    from rdkit import Chem, DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    maker = GetMorganGenerator(radius=2, fpSize=2048)
    prints = [maker.GetFingerprint(Chem.MolFromSmiles(text)) for text in SMILES.values()]
    expected = [[DataStructs.TanimotoSimilarity(one, two) for two in prints] for one in prints]
    np.testing.assert_allclose(kernels(smiles=SMILES)["Morgan"], expected)
    with pytest.warns(DataWarning, match=re.escape("1 of 5 do not parse and are similar to no other: row 5 ('bad')")):
        assert kernels(smiles=SMILES | {"bad": "C1CC"})["Morgan"]["bad"].tolist() == [0, 0, 0, 0, 1]


def test_a_table_under_a_name_is_what_its_labels_say() -> None:
    square = pd.DataFrame(np.eye(4) * 0.5 + 0.5, IDS, IDS)
    found = Described.of("row", {"own": square, "ESM": square.set_axis(range(4), axis=1)}, np.array(IDS))
    assert [each.kind for each in found.kernels.values()] == ["table", "rbf"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"features": pd.DataFrame([[1, np.nan]], ["a"])}, "finite row_similarity['features'] of each row, found 1"),
        ({"features": pd.DataFrame([["x"]], ["a"])}, "must be numbers, found 'x'"),
        ({"features": pd.DataFrame([[1], [2]], ["a", "a"])}, "each id once in its rows, found again: ['a']"),
        ({"sequences": {"a": 3}}, "as text, found 3 for 'a'"),
        ({"sequences": {}}, "expected row_similarity['sequences'], found none"),
        ({"sequences": ["MKV"]}, "as a Series by id or a mapping of ids, found list"),
        ({"sequences": {"a": "MKV>P2GG"}}, "of letters, found '>' in that of 'a'"),
        ({"sequences": {"a": "MET SER ARG LEU"}}, "found codes of three in that of 'a'"),
        ({"features": pd.DataFrame({"bits": [101e9]}, ["a"])}, "a column for each bit, found 'bits'"),
    ],
)
def test_what_cannot_be_compared_is_refused(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        Described.of("row", given, np.array(["a"]))


@pytest.mark.parametrize(
    ("texts", "message"),
    [({"a": "C1CC"}, "none that parses"), ({"a": "[C][C][O]", "b": "[C][N]"}, "found '[C][C][O]', as of SELFIES")],
)
def test_what_is_no_structure_is_refused(texts: dict[str, str], message: str) -> None:
    pytest.importorskip("rdkit")
    with pytest.raises(DataError, match=re.escape(message)):
        kernels(smiles=texts)

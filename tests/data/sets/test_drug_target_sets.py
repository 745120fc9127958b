"""The drug-target sets of Yamanishi et al. and of Davis et al."""

import json

import numpy as np
import pytest

from air_recsys.datasets import load_davis, load_yamanishi
from air_recsys.exceptions import DataFileError, ParameterError


def named_matrix(rows, columns, values):
    lines = ["\t".join(["", *columns])]
    lines += ["\t".join([row, *map(str, line)]) for row, line in zip(rows, values, strict=True)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def yamanishi(tmp_path):
    """A data root with the sets nr (3 targets x 2 drugs) and e (the same, with a rounded target similarity)."""
    folder = tmp_path / "rooty" / "dti" / "yamanishi"
    folder.mkdir(parents=True)
    targets, drugs = ["hsa1", "hsa2", "hsa3"], ["D01", "D02"]
    for name in ("nr", "e"):
        (folder / f"{name}_admat_dgc.txt").write_text(named_matrix(targets, drugs, [[1, 0], [0, 0], [1, 1]]))
        (folder / f"{name}_simmat_dc.txt").write_text(named_matrix(drugs, drugs, [[0.9, 0.2], [0.4, 1]]))
    # Another order of the names than in the interaction file.
    shuffled = ["hsa3", "hsa1", "hsa2"]
    similarity = [[1, 0.31, 0.32], [0.31, 1, 0.12], [0.32, 0.12, 1]]
    (folder / "nr_simmat_dg.txt").write_text(named_matrix(shuffled, shuffled, similarity))
    (folder / "e_simmat_dg_sparse_1dp.txt").write_text("hsa1\thsa3\t0.3\nhsa3\thsa1\t0.3\n")
    return folder.parent.parent


@pytest.fixture
def davis(tmp_path):
    """A data root with a davis folder: 2 drugs x 3 targets."""
    folder = tmp_path / "rootd" / "dti" / "davis"
    (folder / "folds").mkdir(parents=True)
    (folder / "ligands_can.txt").write_text(json.dumps({"111": "CC", "222": "CO"}))
    (folder / "proteins.txt").write_text(json.dumps({"AAK1": "MKK", "ABL1": "MLE", "ACK": "MQP"}))
    kd = "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt"
    (folder / kd).write_text("1 10000 10\n100 0.1 1000\n")
    (folder / "drug-drug_similarities_2D.txt").write_text("1 0.5\n0.5 1\n")
    (folder / "target-target_similarities_WS.txt").write_text("100 20 10\n20 400 30\n10 30 900\n")
    (folder / "folds" / "train_fold_setting1.txt").write_text("[[0, 3], [1]]")
    (folder / "folds" / "test_fold_setting1.txt").write_text("[5, 2]")
    return folder.parent.parent


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_yamanishi_is_square_in_the_order_of_the_ids_wherever_it_lies(yamanishi, levels):
    data = load_yamanishi([yamanishi, yamanishi / "dti", yamanishi / "dti/yamanishi"][levels], "nr")
    assert data.interactions.user_ids.tolist() == ["D01", "D02"]
    assert data.interactions.item_ids.tolist() == ["hsa1", "hsa2", "hsa3"]
    assert data.interactions.to_dense().tolist() == [[1, 0, 1], [0, 0, 1]]
    assert data.smiles is None
    assert data.drug_similarity.index.tolist() == data.drug_similarity.columns.tolist() == ["D01", "D02"]
    np.testing.assert_allclose(data.drug_similarity, [[0.9, 0.3], [0.3, 1]])
    assert data.target_similarity.index.tolist() == ["hsa1", "hsa2", "hsa3"]
    np.testing.assert_allclose(data.target_similarity, [[1, 0.12, 0.31], [0.12, 1, 0.32], [0.31, 0.32, 1]])


def test_enzymes_take_the_best_target_similarity_there_is(yamanishi):
    folder = yamanishi / "dti" / "yamanishi"
    np.testing.assert_allclose(load_yamanishi(yamanishi, "e").target_similarity, [[1, 0, 0.3], [0, 1, 0], [0.3, 0, 1]])
    names = ["hsa1", "hsa2", "hsa3"]
    (folder / "e_simmat_dg.txt").write_text(named_matrix(names, names, np.eye(3)))
    np.testing.assert_allclose(load_yamanishi(yamanishi, "e").target_similarity, np.eye(3))
    (folder / "e_simmat_dg.txt").unlink()
    (folder / "e_simmat_dg_sparse_1dp.txt").unlink()
    assert load_yamanishi(yamanishi, "e").target_similarity is None
    (folder / "nr_simmat_dg.txt").unlink()
    with pytest.raises(DataFileError, match=r"'nr_simmat_dg.txt'.*air-recsys datasets fetch yamanishi"):
        load_yamanishi(yamanishi, "nr")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("nr_admat_dgc.txt", "hsa2\t0\t0", "hsa2\t0\t2", r"line 3: expected values 0 or 1"),
        ("nr_admat_dgc.txt", "hsa2\t0\t0", "hsa2\t0", "line 3: expected a new row name and 2 numbers"),
        ("nr_admat_dgc.txt", "hsa2\t0\t0", "hsa2\t0\tnan", "line 3: expected finite numbers only, found 'nan'"),
        ("nr_admat_dgc.txt", "D01\tD02", "D01\tD01", "line 1: expected distinct column names"),
        ("nr_simmat_dc.txt", "\nD02", "\nD03", "expected the 2 ids as row names"),
        ("nr_simmat_dg.txt", "\thsa3", "\thsa9", "expected the 3 ids as column names"),
        ("e_simmat_dg_sparse_1dp.txt", "hsa3\thsa1", "hsa3\thsa9", "line 2: expected two targets"),
        ("e_simmat_dg_sparse_1dp.txt", "hsa1\t0.3", "hsa1\tinf", "line 2: expected a finite number as similarity"),
    ],
)
def test_malformed_yamanishi(yamanishi, name, old, new, message):
    path = yamanishi / "dti" / "yamanishi" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataFileError, match=message) as caught:
        load_yamanishi(yamanishi, name.partition("_")[0])
    assert str(path) in str(caught.value)


def test_names_without_values_and_unknown_sets(yamanishi):
    (yamanishi / "dti" / "yamanishi" / "nr_admat_dgc.txt").write_text("\tD01\tD02\n")
    with pytest.raises(DataFileError, match="found column names only"):
        load_yamanishi(yamanishi, "nr")
    with pytest.raises(ParameterError, match="'nr', 'gpcr', 'ic', 'e'"):
        load_yamanishi(yamanishi, "enzyme")


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_davis_has_pkd_normalised_scores_and_folds_of_positions(davis, levels):
    data = load_davis([davis, davis / "dti", davis / "dti/davis"][levels])
    assert data.interactions.user_ids.tolist() == ["111", "222"]
    assert data.interactions.item_ids.tolist() == data.sequences.index.tolist() == ["AAK1", "ABL1", "ACK"]
    np.testing.assert_allclose(data.interactions.to_dense(), [[9, 5, 8], [7, 10, 6]])
    assert data.smiles.to_dict() == {"111": "CC", "222": "CO"}
    np.testing.assert_allclose(data.target_similarity, [[1, 0.1, 1 / 30], [0.1, 1, 0.05], [1 / 30, 0.05, 1]])
    assert [fold.tolist() for fold in data.train_folds] == [[0, 3], [1]]
    assert data.interactions.select(data.test_fold).ratings.tolist() == pytest.approx([6, 8])


KD = "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (KD, "1 2 0\n1 2 3\n", "line 1: expected positive"),
        (KD, "1 2 3\n", "expected 2 rows of 3"),
        ("drug-drug_similarities_2D.txt", "1 0.5\n0.5\n", "line 2: expected 2 numbers, as on line 1, found '0.5'"),
        ("drug-drug_similarities_2D.txt", "1 0.5\n0.5 one\n", "line 2: expected finite numbers only, found 'one'"),
        ("target-target_similarities_WS.txt", "9 1 1\n1 0 1\n1 1 9\n", "line 2: expected a positive self score"),
        ("ligands_can.txt", "{", "expected JSON"),
        ("proteins.txt", json.dumps({"AAK1": 1}), "expected a JSON object of texts"),
        ("folds/train_fold_setting1.txt", "3", "expected a list of lists, found int"),
        ("folds/train_fold_setting1.txt", "[3]", r"distinct positions 0\.\.5"),
        ("folds/test_fold_setting1.txt", "[1, 1]", r"distinct positions 0\.\.5"),
    ],
)
def test_malformed_davis(davis, name, content, message):
    path = davis / "dti" / "davis" / name
    assert path.is_file()
    path.write_text(content)
    with pytest.raises(DataFileError, match=message) as caught:
        load_davis(davis)
    assert str(path) in str(caught.value)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_drugs", "n_targets", "n_known"),
    [("nr", 54, 26, 90), ("gpcr", 223, 95, 635), ("ic", 210, 204, 1476), ("e", 445, 664, 2926)],
)
def test_published_counts(data_root, name, n_drugs, n_targets, n_known):
    data = load_yamanishi(data_root, name)
    known = data.interactions
    assert (known.n_users, known.n_items, known.ratings.sum()) == (n_drugs, n_targets, n_known)
    assert known.n_ratings == n_drugs * n_targets
    for similarity in (data.drug_similarity.to_numpy(), data.target_similarity.to_numpy()):
        assert (similarity == similarity.T).all()
        assert similarity.min() >= 0
        assert similarity.max() <= 1


@pytest.mark.data
def test_published_davis(data_root):
    data = load_davis(data_root)
    assert (data.interactions.n_users, data.interactions.n_items) == (68, 442)
    assert np.isclose(data.interactions.ratings, 5).mean() == pytest.approx(0.696, abs=0.001)
    covered = np.concatenate([*data.train_folds, data.test_fold])
    assert np.sort(covered).tolist() == list(range(68 * 442))
    assert (data.smiles.size, data.sequences.size) == (68, 442)

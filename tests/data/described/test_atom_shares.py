"""What atoms add to the similarity of two structures: as by removing their bits one atom after the other."""

import numpy as np
import pytest

pytest.importorskip("rdkit")
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from air_recsys.data.described.molecules import atom_shares

MOLECULES = ["CC(=O)Oc1ccccc1C(=O)O", "OC(=O)c1ccccc1O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C", "c1ccccc1.CCO"]


@pytest.mark.parametrize("first", MOLECULES)
@pytest.mark.parametrize("second", MOLECULES)
def test_shares_are_what_the_similarity_loses_without_the_bits_of_an_atom(first: str, second: str) -> None:
    molecule, other = map(Chem.MolFromSmiles, (first, second))
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    told = rdFingerprintGenerator.AdditionalOutput()
    told.AllocateBitInfoMap()
    whole, beside = make.GetFingerprint(molecule, additionalOutput=told), make.GetFingerprint(other)
    similarity, shares = atom_shares(molecule, other)
    assert similarity == pytest.approx(DataStructs.TanimotoSimilarity(whole, beside))
    for atom in range(molecule.GetNumAtoms()):
        left = whole | whole  # a copy
        for bit, places in told.GetBitInfoMap().items():
            for centre, radius in places:
                bonds = Chem.FindAtomEnvironmentOfRadiusN(molecule, radius, centre) if radius else []
                ends = {molecule.GetBondWithIdx(bond).GetBeginAtomIdx() for bond in bonds}
                ends |= {molecule.GetBondWithIdx(bond).GetEndAtomIdx() for bond in bonds}
                if atom in ends | {centre}:
                    left.UnSetBit(bit)
        assert shares[atom] == pytest.approx(similarity - DataStructs.TanimotoSimilarity(left, beside))
    assert np.all(shares <= similarity + 1e-12)

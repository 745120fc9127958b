"""Structures from SMILES: standardised, compared by fingerprints, and told where they cannot be read."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.described.kernels import Kernel, bits_of
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.validation import import_extra

PRINTS = {"Morgan": 2048, "torsions": 2048, "MACCS": 167}
"""Fingerprints by name, with their bits."""
_RADIUS = 2
_METALS = ("[Li", "[Na", "[K", "[Mg", "[Ca", "[Zn")
_SELFIES = r"(\[[^\]]+\]){2,}"
_SHOWN = 3


class Structure(NamedTuple):
    """A molecule, or why there is none, and what was changed of it."""

    molecule: Any  # None: not read
    reason: str = ""
    changes: tuple[str, ...] = ()


def structures(texts: Iterable[Any]) -> list[Structure]:
    """Read SMILES and standardise them, as chemists do before they compare (needs the extra ``chemistry``).

    The largest organic part of a salt or mixture stays, bound metals are cut off, groups are written in one way
    (nitro, sulfoxide, azide, ...) and charges are neutralised where that is possible. Tautomers stay as they are
    written: to find one form for all takes 20 times as long. They have one InChIKey, by which `told_of` finds them.

    Examples
    --------
    >>> found = structures(["CC(=O)[O-].[Na+]", "C1CC"])
    >>> found[0].changes, found[1].reason
    (('salts', 'charges'), 'not SMILES')
    """
    tools = _tools()
    with tools.logs.BlockLogs():
        return [_standardised(tools, text) for text in texts]


def is_structure(text: str) -> bool:
    """Return whether a text is SMILES."""
    tools = _tools()
    with tools.logs.BlockLogs():
        return bool(text) and tools.chem.MolFromSmiles(text, sanitize=False) is not None


def fingerprints(found: Sequence[Structure], names: Iterable[str] = tuple(PRINTS)) -> dict[str, Kernel]:
    """The fingerprints of structures, by name; those that were not read have none."""
    tools = _tools()
    return {name: bits_of(_packed(tools.prints[name], found, PRINTS[name])) for name in names}


def told_of(name: str, texts: pd.Series, stacklevel: int = 2) -> tuple[list[Structure], str]:
    """Structures by id, and a line of what was changed; warn of those that are not read, and of the same ones."""
    given = texts.dropna()
    if len(given) and given.str.fullmatch(_SELFIES).all():
        raise DataError(f"expected SMILES, found {quoted(given.iloc[0])}, as of SELFIES: selfies.decoder makes SMILES")
    found = structures(texts)
    unread = [
        f"row {row} ({id!r}): {quoted(text)}, {each.reason}"
        for row, (id, text, each) in enumerate(zip(texts.index, texts, found, strict=True), 1)
        if text is not None and each.molecule is None
    ]
    if unread and not any(each.molecule for each in found):
        raise DataError(f"expected {name} of SMILES, found none that parses: {'; '.join(unread[:_SHOWN])}")
    if unread:
        told = f"{len(unread)} of {len(found)} do not parse and are similar to no other: {'; '.join(unread[:_SHOWN])}"
        warnings.warn(f"{name}: {told}", DataWarning, stacklevel=stacklevel)
    if same := _same(texts.index, found):
        told = f"{len(same)} structures stand under several ids (by InChIKey), the first under {quoted(same[0])}"
        warnings.warn(f"{name}: {told}", DataWarning, stacklevel=stacklevel)
    changes = Counter(change for each in found for change in each.changes)
    n_changed = sum(bool(each.changes) for each in found)
    counted = ", ".join(f"{what} of {number}" for what, number in changes.items())
    return found, f"{name}: {n_changed} of {len(found)} standardised ({counted})" if n_changed else ""


def _same(ids: pd.Index, found: Sequence[Structure]) -> list[list[Any]]:
    """Ids of one structure, by the InChIKey; polymers have none."""
    tools, of_key = _tools(), {}
    with tools.logs.BlockLogs():
        for id, each in zip(ids, found, strict=True):
            if each.molecule is not None and (key := tools.inchi.MolToInchiKey(each.molecule)):
                of_key.setdefault(key, []).append(id)
    return [each for each in of_key.values() if len(each) > 1]


def atom_shares(molecule: Any, other: Any) -> tuple[float, np.ndarray]:
    r"""Return the Morgan similarity of two molecules, and how much each atom of the first adds to it, (n_atoms,).

    An atom adds what the similarity loses without the bits that the atom takes part in. Of a and b bits c are common;
    without :math:`a_i` bits, of which :math:`c_i` are common, :math:`(c - c_i) / (a - a_i + b - c + c_i)` remains.

    Source: Riniker, Landrum, Similarity maps: a visualization strategy for molecular fingerprints and machine-learning
    methods, Journal of Cheminformatics 5:43, 2013.

    Examples
    --------
    >>> similarity, shares = atom_shares(*(each.molecule for each in structures(["CCO", "CCN"])))
    >>> round(similarity, 3), shares.round(3).tolist()
    (0.333, [0.208, 0.19, -0.167])
    """
    (bits, taking_part), (others, _) = _morgan(molecule), _morgan(other)
    common = bits & others
    both, either = common.sum(), (bits | others).sum()
    lost, gone = taking_part[:, common].sum(axis=1), taking_part.sum(axis=1)  # (n_atoms,)
    left = (both - lost) / np.maximum(either - gone + lost, 1)
    return float(both / either), both / either - left


def _morgan(molecule: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bits of the Morgan fingerprint, (n_bits,), and those that each atom takes part in, (n_atoms, n_bits)."""
    tools = _tools()
    told = tools.morgan.AdditionalOutput()
    told.AllocateBitInfoMap()
    tools.prints["Morgan"](molecule, additionalOutput=told)
    apart = tools.chem.GetDistanceMatrix(molecule)
    taking_part = np.zeros((molecule.GetNumAtoms(), PRINTS["Morgan"]), dtype=bool)
    for bit, places in told.GetBitInfoMap().items():
        for centre, radius in places:
            taking_part[:, bit] |= apart[centre] <= radius
    return np.asarray(taking_part.any(axis=0)), taking_part


class _Tools(NamedTuple):
    chem: Any
    logs: Any
    inchi: Any
    largest: Any
    metals: Any
    groups: Any
    charges: Any
    prints: dict[str, Any]
    morgan: Any


@cache
def _tools() -> _Tools:
    chem = import_extra("rdkit.Chem", "chemistry")
    standard: Any = import_extra("rdkit.Chem.MolStandardize.rdMolStandardize", "chemistry")
    makers: Any = import_extra("rdkit.Chem.rdFingerprintGenerator", "chemistry")
    descriptors: Any = import_extra("rdkit.Chem.rdMolDescriptors", "chemistry")
    logs: Any = import_extra("rdkit.rdBase", "chemistry")
    with logs.BlockLogs():
        prints = {
            "Morgan": makers.GetMorganGenerator(radius=_RADIUS, fpSize=PRINTS["Morgan"]).GetFingerprint,
            "torsions": makers.GetTopologicalTorsionGenerator(fpSize=PRINTS["torsions"]).GetFingerprint,
            "MACCS": descriptors.GetMACCSKeysFingerprint,
        }
        return _Tools(
            chem,
            logs,
            import_extra("rdkit.Chem.inchi", "chemistry"),
            standard.LargestFragmentChooser(preferOrganic=True),
            standard.MetalDisconnector(),
            standard.Normalizer(),
            standard.Uncharger(),
            prints,
            makers,
        )


def _standardised(tools: _Tools, text: Any) -> Structure:
    if not isinstance(text, str) or not text.strip():
        return Structure(None, "missing")
    molecule = tools.chem.MolFromSmiles(text)
    if molecule is None or not molecule.GetNumAtoms():
        return Structure(None, _reason(tools, text))
    changes = []
    try:
        if any(metal in text for metal in _METALS) and molecule.GetNumBonds():
            cut = tools.metals.Disconnect(molecule)
            changes += ["metals"] * (cut.GetNumBonds() < molecule.GetNumBonds())
            molecule = cut
        if len(tools.chem.GetMolFrags(molecule)) > 1:
            molecule, changes = tools.largest.choose(molecule), [*changes, "salts"]
        groups = tools.groups.normalize(molecule)
        changes += ["groups"] * (_charges(groups) != _charges(molecule))
        molecule = groups
        if any(_charges(molecule)):
            neutral = tools.charges.uncharge(molecule)
            changes += ["charges"] * (_charges(neutral) != _charges(molecule))
            molecule = neutral
    except (ValueError, RuntimeError) as error:  # of RDKit, on structures that no rule foresees
        return Structure(None, str(error).strip().splitlines()[0])
    return Structure(molecule, "", tuple(changes))


def _charges(molecule: Any) -> list[int]:
    return [atom.GetFormalCharge() for atom in molecule.GetAtoms()]


def _reason(tools: _Tools, text: str) -> str:
    """Why SMILES do not parse."""
    raw = tools.chem.MolFromSmiles(text, sanitize=False)
    if raw is None:
        return "not SMILES"
    problems = tools.chem.DetectChemistryProblems(raw)
    return str(problems[0].Message()) if problems else "no atom"


def _packed(make: Any, found: Sequence[Structure], n_bits: int) -> np.ndarray:
    from rdkit.DataStructs import BitVectToBinaryText  # type: ignore[import-not-found]

    width = (n_bits + 7) // 8
    packed = np.zeros((len(found), width), np.uint8)
    for row, each in zip(packed, found, strict=True):
        if each.molecule is not None:
            row[:] = np.frombuffer(BitVectToBinaryText(make(each.molecule)), np.uint8)[:width]
    return packed

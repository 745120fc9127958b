"""Structures of drugs on a page, each beside the known drugs that speak for it, atoms coloured by what they share."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from air_recsys.data.described.molecules import atom_shares, structures
from air_recsys.exceptions import MissingExtraError
from air_recsys.report.document import Markup, element, joined
from air_recsys.report.sections import note
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from air_recsys.data.described.sides import Described

_WIDTH, _HEIGHT = 230, 170  # pixels
_RADIUS = 9
_STRONGEST = 0.6  # opacity of the atom that adds most
_LEAST = 0.05  # of the strongest: paler ones are left out
_NAMED = 3  # atoms in a description
_LINES = {"fill": "none", "stroke": "currentColor", "stroke-linejoin": "round"}


class Shown(NamedTuple):
    """A drug, what it is shown for, and the known drugs that speak for it, each with words on what it says."""

    id: Hashable
    told: str = ""
    known: Sequence[tuple[Hashable, str]] = ()


def structures_part(
    described: Described | None, ids: np.ndarray, shown: Sequence[Shown], name: Callable[[Hashable], str]
) -> Markup:
    """Return pictures of some drugs; a note where they cannot be drawn, nothing for drugs without structures."""
    if described is None or "Morgan" not in described.kernels:
        return Markup()
    if described.smiles is None:
        return note("Structures are not drawn: the model is of a version that did not keep them. Fit it again.")
    texts = dict(zip(ids.tolist(), described.smiles.tolist(), strict=True))
    wanted = dict.fromkeys(id for each in shown for id in (each.id, *(other for other, _ in each.known)))
    try:
        found = structures([texts.get(id) for id in wanted])
        molecules = {id: each.molecule for id, each in zip(wanted, found, strict=True) if each.molecule is not None}
        parts = [_row(each, molecules, name) for each in shown if each.id in molecules]
    except MissingExtraError as error:
        return note(f"Structures are not drawn: {error}.")
    lead = (
        "An atom adds what the Morgan similarity of the two drugs loses without the parts of the molecule around it: "
        "green atoms raise it, orange ones lower it (similarity maps). The first picture of a row is coloured by the "
        "drug beside it, the others by the first."
    )
    return joined([element("h3", "Structures"), element("p", lead), *parts])


def _row(shown: Shown, molecules: dict[Hashable, Any], name: Callable[[Hashable], str]) -> Markup:
    """Return a drug and the known ones beside it."""
    own = molecules[shown.id]
    known = [(id, told) for id, told in shown.known if id in molecules]
    beside = (molecules[known[0][0]], name(known[0][0])) if known else None
    first = _figure(own, name(shown.id), beside, shown.told)
    others = [_figure(molecules[id], name(id), (own, name(shown.id)), f": {told}") for id, told in known]
    return element("div", first, *others, class_="structures")


def _figure(molecule: Any, name: str, beside: tuple[Any, str] | None, told: str = "") -> Markup:
    """Return the picture of a molecule, its atoms coloured by what they add to the similarity with another one."""
    caption = element("figcaption", element("b", name), told)
    if beside is None:
        text = f"Structure of {name}, {molecule.GetNumAtoms()} atoms."
        return element("figure", structure_svg(molecule, text), caption)
    similarity, shares = atom_shares(molecule, beside[0])
    best = [atom for atom in np.argsort(-shares, kind="stable")[:_NAMED].tolist() if shares[atom] > 0]
    most = ", ".join(f"{_atom(molecule, atom)} ({shares[atom]:+.3f})" for atom in best)
    text = (
        f"Structure of {name}, Morgan similarity {similarity:.2f} with {beside[1]}; {np.sum(shares > 0)} of "
        f"{shares.size} atoms raise it{', most ' + most if most else ''}."
    )
    caption = element("figcaption", element("b", name), f"{told}, similarity {similarity:.2f}")
    return element("figure", structure_svg(molecule, text, shares), caption)


def _atom(molecule: Any, place: int) -> str:
    return f"{molecule.GetAtomWithIdx(place).GetSymbol()}{place + 1}"


def structure_svg(molecule: Any, label: str, shares: np.ndarray | None = None) -> Markup:
    """Return a molecule of RDKit as a small SVG element in the colours of the page, atoms coloured by numbers."""
    drawing: Any = import_extra("rdkit.Chem.Draw.rdMolDraw2D", "chemistry")
    drawer = drawing.MolDraw2DSVG(_WIDTH, _HEIGHT, -1, -1, True)  # letters as text, in the font of the page
    drawer.drawOptions().clearBackground = False
    drawer.drawOptions().useBWAtomPalette()
    drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    root = ET.fromstring(drawer.GetDrawingText())
    marks = [] if shares is None else _marks(molecule, shares, drawer)
    paths = [(each.attrib["d"], each.attrib.get("style", "")) for each in root if each.tag.endswith("path")]
    lines, areas = (" ".join(d for d, style in paths if ("fill:none" in style) == empty) for empty in (True, False))
    letters = [
        element("text", each.text or "", x=each.attrib["x"], y=each.attrib["y"], style=size[0])
        for each in root
        if each.tag.endswith("text") and (size := re.search(r"font-size:\w+", each.attrib["style"]))
    ]
    drawn = [*marks, element("path", d=lines, **_LINES), element("path", d=areas), *letters]
    box = {"width": _WIDTH, "viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "fill": "currentColor"}
    return element("svg", *drawn, **box, role="img", **{"aria-label": label})


def _marks(molecule: Any, shares: np.ndarray, drawer: Any) -> list[Markup]:
    """Return discs behind the atoms, darker for larger shares, with the numbers to point at."""
    largest, found = float(np.abs(shares).max()), []
    for place, share in enumerate(shares.tolist()):
        if largest > 0 and abs(share) > _LEAST * largest:
            at = drawer.GetDrawCoords(place)
            color = "var(--green, #009e73)" if share > 0 else "var(--orange, #d55e00)"
            look = {"fill": color, "fill-opacity": f"{_STRONGEST * abs(share) / largest:.2f}"}
            told = element("title", f"{_atom(molecule, place)}: {share:+.3f}")
            found.append(element("circle", told, cx=f"{at.x:.1f}", cy=f"{at.y:.1f}", r=_RADIUS, **look))
    return found

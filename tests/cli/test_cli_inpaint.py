"""The command ``inpaint``: what the library completes, and every fault told before any training."""

import numpy as np
import pytest
from cli_cases import assert_refused, cli, read_json

from air_recsys.evaluation.results.table import format_number
from air_recsys.images import MODELS, inpaint, inpainting_errors, load_image, load_mask, random_mask, save_image
from air_recsys.models import PatchAIR

FEW = ["--set", "n_epochs=20", "--device", "cpu"]
IMAGE = np.add.outer(np.linspace(0, 0.6, 20), np.linspace(0, 0.4, 14))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An image, the same with its hidden pixels destroyed, and masks good and bad."""
    root = tmp_path_factory.mktemp("inpaint")
    mask = random_mask(IMAGE.shape, 0.3, 1)
    mask[5] = False
    save_image(root / "whole.png", IMAGE)
    save_image(root / "mask.png", mask)
    save_image(root / "damaged.png", np.where(mask, IMAGE, 0))
    save_image(root / "white.png", np.ones(IMAGE.shape))
    save_image(root / "small.png", np.eye(5))
    hole = np.ones(IMAGE.shape, dtype=bool)
    hole[3:12, 2:11] = False
    save_image(root / "hole.png", hole)
    (root / "text.png").write_text("no image", encoding="utf-8")
    return root


def model(**settings):
    return PatchAIR(**{"n_epochs": 20, "device": "cpu", "random_state": 0} | settings)


def test_a_mask_and_the_truth(folder, tmp_path):
    out, target = tmp_path / "out.png", tmp_path / "o.json"
    asked = ["--mask", folder / "mask.png", "--truth", folder / "whole.png", "--out", out, "--json", target]
    ended = cli("inpaint", folder / "damaged.png", *asked, *FEW)
    assert ended.status == 0, ended.err
    mask, truth = load_mask(folder / "mask.png"), load_image(folder / "whole.png")
    completed = inpaint(load_image(folder / "damaged.png"), mask, model())
    written = load_image(out)
    np.testing.assert_array_equal(written[mask], truth[mask])
    np.testing.assert_allclose(written, completed, atol=0.51 / 255)
    figures = read_json(target)
    assert (figures["height"], figures["width"]) == IMAGE.shape
    assert figures["hidden"] == pytest.approx(1 - mask.mean())
    for name, value in inpainting_errors(truth, completed, mask).items():
        assert figures[name] == pytest.approx(value, rel=1e-4)
        assert format_number(figures[name]) in ended.out
    assert {"seconds", "versions", "machine"} < set(figures)
    for words in ("20 x 14 pixels", f"{figures['hidden']:.1%} hidden", "completed in", f"wrote {out}"):
        assert words in ended.out


def test_a_random_mask_has_the_image_as_truth(folder, tmp_path):
    target = tmp_path / "o.json"
    asked = ["--missing", 0.4, "--seed", 3, "--out", tmp_path / "out.jpg", "--json", target]
    ended = cli("inpaint", folder / "whole.png", *asked, *FEW)
    assert ended.status == 0, ended.err
    truth = load_image(folder / "whole.png")
    mask = random_mask(truth.shape, 0.4, 3)
    expected = inpainting_errors(truth, inpaint(truth, mask, model(random_state=3)), mask)
    figures = read_json(target)
    assert {name: figures[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert (tmp_path / "out.jpg").read_bytes().startswith(b"\xff\xd8")


def test_other_models_and_settings(folder, tmp_path):
    out = tmp_path / "out.png"
    asked = ["--mask", folder / "mask.png", "--model", "rows", "--set", "tv_reg=0.1", "--out", out]
    ended = cli("inpaint", folder / "damaged.png", *asked, *FEW)
    assert ended.status == 0, ended.err
    assert "completed by AIR" in ended.out
    same = MODELS["rows"]().set_params(solver__tv_reg=0.1, solver__n_epochs=20, device="cpu", random_state=0)
    completed = inpaint(load_image(folder / "damaged.png"), load_mask(folder / "mask.png"), same)
    np.testing.assert_allclose(load_image(out), completed, atol=0.51 / 255)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--mask {}/mask.png --model pnmc --set patch=4", "completed by PNMC"),  # without seed and device
        (
            "--mask {}/hole.png --set n_epochs=20 --device cpu",
            "completed by AIR",
        ),  # larger than a patch
        (
            "--mask {}/small.png --size 12 --truth {}/whole.png --set n_epochs=20 --device cpu",
            "12 x 12 pixels",
        ),
    ],
)
def test_what_completes_and_how_large_is_said(folder, tmp_path, options, told):
    out = tmp_path / "out.png"
    ended = cli("inpaint", folder / "damaged.png", *[word.format(folder) for word in options.split()], "--out", out)
    assert ended.status == 0, ended.err
    assert told in ended.out
    assert ("NMAE" in ended.out) == ("--truth" in options)
    assert load_image(out).shape == ((12, 12) if "--size" in options else IMAGE.shape)


MASK = "--mask {}/mask.png --out out.png"


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{}/none.png " + MASK, ["expected an image file, found no file", "none.png"]),
        ("{}/text.png " + MASK, ["expected an image that can be read in", "text.png"]),
        ("{}/whole.png --out out.png", ["either --mask or --missing, found neither"]),
        ("{}/whole.png --missing 0.3 " + MASK, ["either --mask or --missing"]),
        ("{}/whole.png --missing 0 --out out.png", ["hides nothing"]),
        ("{}/whole.png --missing 1.5 --out out.png", ["missing must be a number >= 0 and <= 1, found 1.5"]),
        ("{}/whole.png --mask {}/small.png --out out.png", ["20 x 14 pixels, found 5 x 5"]),
        ("{}/whole.png --mask {}/white.png --out out.png", ["hides nothing of 20 x 14"]),
        ("{}/whole.png --truth {}/small.png " + MASK, ["(20, 14), found (5, 5)"]),
        (
            "{}/whole.png --truth {}/whole.png --missing 0.3 --out out.png",
            ["the truth, does not read --truth"],
        ),
        ("{}/whole.png --size 0 " + MASK, ["--size"]),
        ("{}/whole.png --mask {}/mask.png", ["--out"]),
        ("{}/whole.png --mask {}/mask.png --out out.gif", [".png, .jpg, .jpeg, found 'out.gif'"]),
        ("{}/whole.png --mask {}/mask.png --out none/out.png", ["expected an existing folder for out.png"]),
        ("{}/whole.png --set n_epoch=3 " + MASK, ["PatchAIR has no parameter 'n_epoch'", "n_epochs"]),
        ("{}/whole.png --model rows --set n_epoch=3 " + MASK, ["'n_epoch'; do you mean n_epochs?"]),
        ("{}/whole.png --model best " + MASK, ["--model"]),
    ],
)
def test_bad_input(folder, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert_refused(cli("inpaint", *[part.format(folder) for part in arguments.split(" ")]), *words)
    assert list(tmp_path.iterdir()) == []

"""Files become brightness by the paper's steps, and come back as they were written."""

import io
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from air_recsys.data.images import files
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.images import load_image, load_test_image, save_image

COLOURS = np.random.default_rng(0).integers(0, 256, (13, 9, 3), dtype=np.uint8)


def write(path, array, mode=None, **options):
    """Write an array of colours as the format that the suffix tells."""
    image = Image.fromarray(array)
    (image if mode is None else image.convert(mode)).save(path, **options)
    return path


def grey(colours):
    """Brightness of colours by the definition."""
    return np.floor(colours @ [0.299, 0.587, 0.114] + 0.5 + 1e-9) / 255


def sample(colours, size):
    """Bilinear interpolation by the definition: at (i + 1/2) s - 1/2, clipped to the image, rounded."""
    shares = []
    for old in colours.shape[:2]:
        places = ((np.arange(size) + 0.5) * old / size - 0.5).clip(0, old - 1)
        shares.append(np.maximum(0, 1 - np.abs(places[:, None] - np.arange(old))))
    return np.floor(np.einsum("ir,rcx,jc->ijx", shares[0], colours, shares[1]) + 0.5 + 1e-9)


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tiff", ".ppm"])
def test_colours_are_weighed(tmp_path, suffix):
    found = load_image(write(tmp_path / f"a{suffix}", COLOURS))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, grey(COLOURS))
    square = write(tmp_path / f"b{suffix}", COLOURS[:9])
    np.testing.assert_array_equal(load_image(square, 9), grey(COLOURS[:9]))  # of the wanted size, it is not touched


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 16), st.integers(0, 99))
def test_resizing_is_bilinear_without_smoothing(tmp_path_factory, height, width, size, seed):
    colours = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = write(tmp_path_factory.mktemp("resize") / "a.png", colours)
    found = load_image(file, size)
    assert found.shape == (size, size)
    # Where the exact value lies between two levels, float arithmetic may take either.
    assert np.abs(found - grey(sample(colours, size))).max() <= 1 / 255 + 1e-12
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr"])
def test_every_mode_with_up_to_8_bits(tmp_path, mode):
    levels = np.repeat(np.array([[0, 255], [255, 0]], dtype=np.uint8), 8, axis=1)
    file = write(tmp_path / ("a.tiff" if mode in ("CMYK", "YCbCr") else "a.png"), levels, mode)
    with Image.open(file) as image:
        assert image.mode == mode
    np.testing.assert_array_equal(load_image(file), levels / 255)


def test_metadata_turn_the_image_upright(tmp_path):
    upright = np.full((40, 16), 255, dtype=np.uint8)
    upright[:8] = 0
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by a quarter
    file = write(tmp_path / "a.jpg", np.rot90(upright), exif=exif, quality=100)
    np.testing.assert_allclose(load_image(file), upright / 255, atol=0.02)


def bomb():
    """A PNG of a few bytes that claims to be enormous."""
    header = bytearray(png(np.zeros((1, 1), dtype=bool)))
    for position in (16, 20):
        header[position : position + 4] = (12_000).to_bytes(4, "big")  # warned of; refused from twice as many on
    return bytes(header[:29]) + zlib.crc32(bytes(header[12:29])).to_bytes(4, "big") + bytes(header[33:])


def png(array):
    content = io.BytesIO()
    Image.fromarray(array).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot identify image file"),
        (b"user,item,rating\n1,2,3\n", "cannot identify image file"),
        (png(COLOURS)[:-40], "truncated"),
        (bomb(), "decompression bomb"),
        (png(np.full((2, 2, 4), 254, dtype=np.uint8)), "opaque image, found transparent pixels"),
        (png(np.full((2, 2), 999, dtype=np.uint16)), "at most 8 bits a colour, found .* with mode 'I"),
    ],
)
def test_files_that_are_no_image_to_work_with(tmp_path, content, message):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load_image(tmp_path / "a.png")
    assert "a.png" in str(caught.value)


@pytest.mark.parametrize(
    ("load", "error", "message"),
    [
        (lambda folder: load_image(folder / "none.png"), DataError, "expected an image file, found no file"),
        (load_image, DataError, "expected an image file, found no file"),
        (
            lambda folder: load_test_image(folder, "barbara"),
            DataError,
            r"Barbara\.jpg.* none; .*\.com/lizhemin15/AIR-Net",
        ),
        (lambda folder: load_test_image(folder, "lena"), ParameterError, "'baboon', 'cameraman', found 'lena'"),
        (
            lambda folder: load_image(write(folder / "a.png", COLOURS), 2.0),
            ParameterError,
            "size must be an integer >= 1",
        ),
        (
            lambda folder: load_image(write(folder / "a.png", COLOURS), 0),
            ParameterError,
            "size must be an integer >= 1",
        ),
    ],
)
def test_what_is_not_there_and_sizes_that_are_none(tmp_path, load, error, message):
    with pytest.raises(error, match=message):
        load(tmp_path)


@settings(max_examples=60)
@given(st.sampled_from(["PNG", "JPEG", "BMP", "TIFF", "GIF"]), st.data())
def test_a_damaged_file_is_an_image_or_a_data_error(tmp_path_factory, form, data):
    content = io.BytesIO()
    Image.fromarray(COLOURS).save(content, form)
    damaged = bytearray(content.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("damaged") / "a"
    file.write_bytes(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    try:
        found = load_image(file)
    except DataError:
        return
    assert found.ndim == 2
    assert found.min() >= 0
    assert found.max() <= 1


# ---------------------------------------------------------------- the paper's images


@pytest.mark.data
@pytest.mark.parametrize("name", ["barbara", "baboon", "cameraman"])
def test_the_papers_images(data_root, name):
    image = load_test_image(data_root, name)
    assert image.shape == (240, 240)
    assert 0.3 < image.mean() < 0.6
    assert image.max() - image.min() > 0.7
    assert load_test_image(data_root, name, size=100).mean() == pytest.approx(image.mean(), abs=0.01)
    if name == "barbara":  # a grey file is only divided
        levels = np.asarray(Image.open(data_root / "images" / "Barbara.jpg"))[..., 0]
        np.testing.assert_array_equal(load_test_image(data_root, "barbara"), levels / 255)


# ---------------------------------------------------------------- writing


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 99))
def test_png_keeps_every_level(tmp_path_factory, height, width, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width)) / 255
    file = tmp_path_factory.mktemp("png") / "a.png"
    assert save_image(file, image) == file
    np.testing.assert_array_equal(load_image(file), image)
    save_image(file, [[-1.0, 0.4 / 255, 0.6 / 255, 1.5]])  # clipped and rounded
    np.testing.assert_array_equal(load_image(file) * 255, [[0, 0, 1, 255]])


@pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.PNG"])
def test_the_suffix_tells_the_format(tmp_path, name):
    smooth = np.add.outer(np.linspace(0, 0.5, 16), np.linspace(0, 0.5, 24))
    save_image(tmp_path / name, smooth)
    with Image.open(tmp_path / name) as image:
        assert (image.format, image.mode, image.size) == ("PNG" if name.endswith("PNG") else "JPEG", "L", (24, 16))
    np.testing.assert_allclose(load_image(tmp_path / name), smooth, atol=0.02)


@pytest.mark.parametrize(
    ("name", "image", "error", "message"),
    [
        ("a.gif", [[0.0]], ParameterError, r"ends in one of \.png, \.jpg, \.jpeg, found 'a\.gif'"),
        ("a", [[0.0]], ParameterError, "ends in one of"),
        ("none/a.png", [[0.0]], ParameterError, "existing folder for a.png, found no"),
        ("folder.png", [[0.0]], ParameterError, "a file to write to, found the folder"),
        ("a.png", [[float("nan")]], DataError, "finite brightness, found 1 NaN"),
        ("a.png", [0.0], DataError, r"shape \(height, width\), found shape \(1,\)"),
        ("a.png", np.zeros((0, 3)), DataError, r"found shape \(0, 3\)"),
        ("a.png", [["dark"]], DataError, "2-D array of numbers, found list"),
    ],
)
def test_what_cannot_be_written(tmp_path, name, image, error, message):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(error, match=message):
        save_image(tmp_path / name, image)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = save_image(tmp_path / "a.png", [[1.0]])

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_image(file, [[0.0]])
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert load_image(file) == 1

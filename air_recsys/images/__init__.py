"""Images as partly observed matrices: reading and writing, masks, and their completion by a model.

An image is a float64 array (height, width) of brightness in [0, 1], a mask a bool array of the same shape in which
True means observed. Files need the extra ``images``. A parameter outside its range is a `ParameterError`.
"""

from air_recsys.data.images.files import check_image_path, check_mask, load_image, load_test_image, save_image
from air_recsys.data.images.masks import PAPER_PATCHES, load_mask, patch_mask, random_mask, texture_mask
from air_recsys.models.pictures.inpaint import MODELS, inpaint, inpainting_errors, model_for

__all__ = [
    "MODELS",
    "PAPER_PATCHES",
    "check_image_path",
    "check_mask",
    "inpaint",
    "inpainting_errors",
    "load_image",
    "load_mask",
    "load_test_image",
    "model_for",
    "patch_mask",
    "random_mask",
    "save_image",
    "texture_mask",
]

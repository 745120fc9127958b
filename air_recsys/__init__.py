"""AIR: collaborative filtering that learns which users and which items are alike."""

from air_recsys.interactions import Interactions

__version__ = "0.1.0"

__all__ = ["Interactions", "__version__"]

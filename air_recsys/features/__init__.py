"""What is known of users and items beside their ratings: tables, as numbers that a model reads."""

from air_recsys.features.encoding import Encoding
from air_recsys.features.features import Features
from air_recsys.features.tables import as_table

__all__ = ["Encoding", "Features", "as_table"]

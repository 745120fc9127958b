"""Features of users and items: tables, as numbers for a model."""

from air_recsys.data.features.encoding import Encoding
from air_recsys.data.features.features import Features, as_table

__all__ = ["Encoding", "Features", "as_table"]

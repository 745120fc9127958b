"""Tables and columns of other libraries (Polars, PyArrow, DuckDB, ...) as those of pandas."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pandas as pd

from air_recsys.storage.validation import import_extra

_READ_AS_THEY_ARE = ("builtins", "collections", "numpy", "scipy", "torch", "air_recsys")


def as_pandas(data: Any) -> Any:
    """Return a table or a column of another library as pandas has it, and anything else as it is.

    These are eager and lazy ones of all libraries that Narwhals knows (needs the extra ``data``).

    Examples
    --------
    >>> import pyarrow
    >>> as_pandas(pyarrow.table({"user": [1, 2]}))
       user
    0     1
    1     2
    """
    root = type(data).__module__.partition(".")[0]
    if isinstance(data, pd.DataFrame | pd.Series | pd.Index) or root in _READ_AS_THEY_ARE or not find_spec("narwhals"):
        return data
    narwhals = import_module("narwhals")
    table = narwhals.from_native(data, pass_through=True, allow_series=True)
    if table is data:
        return data
    import_extra("pyarrow", "data")  # through which tables pass
    return (table.collect() if isinstance(table, narwhals.LazyFrame) else table).to_pandas()

"""A trained model as a web service: lists, likes, reasons and deviations over HTTP, and a page to try it.

Needs the extra ``serve``. The command ``air-recsys serve`` is all that most need; `make_app` returns the application,
to be mounted into another one.
"""

from air_recsys.serving.app import make_app
from air_recsys.serving.limits import Limits
from air_recsys.serving.service import Service

__all__ = ["Limits", "Service", "make_app"]

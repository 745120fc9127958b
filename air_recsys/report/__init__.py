"""Pages for the browser, each one file: the explorer of similarity graphs, and the report on a model."""

from air_recsys.report.comparison import write_comparison
from air_recsys.report.drug_target import write_drug_target_report
from air_recsys.report.explorer import explorer_of, write_explorer
from air_recsys.report.page import write_report

__all__ = ["explorer_of", "write_comparison", "write_drug_target_report", "write_explorer", "write_report"]

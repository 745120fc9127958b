"""The benchmark of building a graph, on few items."""

from benchmarks.graph_build import bench_graph_build


def test_every_step_is_timed_and_cuts_leave_fewer_edges():
    report = bench_graph_build(n_items=400, width=8, k=20)
    whole, top, mass = report.rows
    assert [row["step"] for row in report.rows] == ["from_factors", "top(10)", "mass(0.5)"]
    assert all(row["seconds"] > 0 and row["cpu_seconds"] > 0 and row["peak_gib"] > 0 for row in report.rows)
    assert 400 * 20 / 2 <= whole["edges"] <= 400 * 20
    assert 0 < top["edges"] < whole["edges"]
    assert 0 < mass["edges"] < whole["edges"]
    assert "400 made items, width 8" in report.protocol

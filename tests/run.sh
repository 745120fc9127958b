#!/usr/bin/env bash
# Installs the package with its test tools into a virtual environment (VENV, default .venv) and checks everything but the
# benchmarks; `bash tests/run.sh benchmarks` runs the tests of those.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,docs]"
# Three at a time on two cores, since many wait for processes and browsers; the tests of a file together; one thread each.
test_side_by_side() {
  OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest -n 3 --dist loadfile "$@"
}
if [[ ${1:-} == benchmarks ]]; then
  test_side_by_side tests/benchmarks benchmarks "${@:2}"
  exit
fi
"$venv/bin/ruff" format --check .
"$venv/bin/ruff" check .
"$venv/bin/pyright" --pythonpath "$venv/bin/python"
# What depends on the order of scores, computed as on older processors, with one and with two threads.
# Only their files are imported: each of the runs would import all of those folders in both of its processes.
read -r -a ordered <<<"$(grep -rl --include="test_*.py" "mark\.order" tests/{adapters,distributed,metrics,models} | xargs)"
for machine in "old 1" "haswell 2"; do
  read -r kind threads <<<"$machine"
  read -r -a settings <<<"$("$venv/bin/python" tests/processors.py "$kind" "$threads")"
  echo "the order of lists with ${settings[*]}"
  env "${settings[@]}" "$venv/bin/python" -m pytest -q -n 2 --dist loadfile -m order "${ordered[@]}"
done
test_side_by_side "$@"

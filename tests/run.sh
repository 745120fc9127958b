#!/usr/bin/env bash
# Installs the package with its test tools into a virtual environment (VENV, default .venv) and checks everything.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,docs]"
"$venv/bin/ruff" format --check .
"$venv/bin/ruff" check .
"$venv/bin/pyright" --pythonpath "$venv/bin/python"
# Two at a time, the tests of a file together; with more threads each would wait for the other.
OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest -n 2 --dist loadfile "$@"

"""Measurements behind every figure of the documentation, each a command of ``python -m benchmarks``.

In all of them `root` is the folder of the benchmark data, and `threads` are those of the libraries in the process that
is measured. The paper is: Z. Li, T. Sun, H. Wang and B. Wang, "Adaptive and Implicit Regularization for Matrix
Completion", SIAM J. Imaging Sciences 15(4), 2022.
"""

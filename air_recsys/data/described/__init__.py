"""What drugs and targets are described by: structures, sequences, numbers and similarities, as kernels of pairs."""

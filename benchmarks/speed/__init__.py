"""Time of trainings, steps, sweeps, readings and lists."""

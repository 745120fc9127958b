"""Time of trainings and lists."""

"""The posterior of factors and biases: rows and columns only, torch."""

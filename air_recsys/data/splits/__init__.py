"""Division of ratings into training and test ratings."""

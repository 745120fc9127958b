"""Factors of users and items from likes alone, as matrix factorizations of other libraries have them."""

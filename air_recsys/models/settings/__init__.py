"""Settings that find themselves: forms of a training, and the short search among them."""

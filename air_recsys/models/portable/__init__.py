"""The fold-in of new users as plain numbers, for programs that solve it without the library."""

"""The book in other forms: on paper, for reading devices, and its chapters as notebooks."""

"""What compares: numbers of chapters with their reference, published records with what is computed now."""

"""From chapters to a checked book: execution, chapter numbers, regression, published records, the site."""

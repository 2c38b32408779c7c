"""From chapters to a checked book: `run` computes, `check` compares, `book` makes the pages, `evidence` shows
verdicts on them."""

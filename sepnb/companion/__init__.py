"""From chapters to a checked book: `run` computes, `check` compares, `book` makes the pages.

`editions` prints and packs them, and `evidence` shows verdicts.
"""

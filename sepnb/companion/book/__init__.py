"""The pages: what is computed for them, the extension of Sphinx that sets them, languages, their build, and
what people take away: the paper and notebooks."""

"""Records: the store of published runs, where each comes from, and how tables of them are summed up."""

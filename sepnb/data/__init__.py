"""The data: which sets there are (`registry`), texts to train and evaluate on (`text`)."""

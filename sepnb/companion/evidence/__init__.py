"""What pages and chapters show of verdicts: the page of claims, the scoreboard, tables of methods."""

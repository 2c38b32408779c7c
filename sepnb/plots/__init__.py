"""Plots: one look for every figure, figures that chapters share, and figures that move."""

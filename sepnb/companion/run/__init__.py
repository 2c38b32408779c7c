"""What computes: chapters in kernels, runs of experiments in processes or on a cluster; what commands say."""

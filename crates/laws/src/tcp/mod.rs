//! Sender laws of classic TCP: what kernels run today, and the baselines of every comparison.

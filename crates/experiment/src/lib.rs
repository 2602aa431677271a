//! A scenario run: build the world, run the seeds, gather the figures.

"""The shipped models, tasks and datasets: written against `ipexperf.ext`, like those of a user."""

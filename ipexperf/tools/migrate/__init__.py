"""From one stack to another: the experiment of `ipexperf migrate`, and the page that it ends with."""

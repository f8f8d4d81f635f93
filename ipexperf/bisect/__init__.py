"""`ipexperf bisect`: which change of software makes a case slower.

A search (`judge.bisection`, `judge.ordered_bisection`) asks of one candidate after the other whether it is slow. The
laboratory makes the software of a candidate and measures it in turns with the good end. Where both ends run different
kernels, which kernels a candidate runs answers first, in one pair of launches; the clock then has the last word on what
was found. Every answer is written down by the content of what was measured, so that an interrupted search goes on where
it was.
"""

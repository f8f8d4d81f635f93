"""`ipexperf bisect`: which change of software makes a case slower.

A search (`judge.bisection`) asks of one candidate after the other whether it is slow. The laboratory makes the software
of a candidate and measures it in turns with the good end. If the two ends run different kernels, the kernels of a
candidate answer first, in one pair of launches, and the clock confirms the finding. Every answer is written to a log,
under a key made of the candidate's content, so that an interrupted search can continue.
"""

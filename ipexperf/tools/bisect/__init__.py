"""`ipexperf bisect`: which change of software makes a case slower.

A search (`judge.bisection`) asks of one candidate after the other whether it is slow. The laboratory makes the software
of a candidate and measures it in turns with the good end. Every answer is written to a log, under a key made of the
candidate's content, so that an interrupted search can continue.
"""

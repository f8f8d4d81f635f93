"""What proves that a case ran as its label says: proofs, fingerprints, the work and the peaks, accuracy."""

"""What is made once and loaded by many launches: trained weights, quantised networks, the size of a network."""

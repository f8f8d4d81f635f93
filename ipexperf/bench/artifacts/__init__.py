"""Results that are made once and loaded by many launches: trained weights, quantised networks, a network's size."""

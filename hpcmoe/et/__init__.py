"""Looking at Chakra traces without simulating them: what is in them, and what is wrong with them."""

"""Plants faults in small migrated programs and sees whether the verifier catches and locates each."""

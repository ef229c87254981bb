"""Do matches agree with known camera poses?"""

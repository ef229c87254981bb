"""Do frames register, and does the mosaic agree with what is known of them?"""

"""What several protocols share: images, descriptors, match pictures, memory."""

"""Parts shared by several protocols: images, descriptors, match pictures, memory."""

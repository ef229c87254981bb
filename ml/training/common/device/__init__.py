"""Views made on the device of the network, following the distributions of OpenCV's."""

"""The child: ``python -m ml.imaging.sandbox PIPE``, started by ``run_limited`` alone."""

from ml.imaging.sandbox.child import main

main()

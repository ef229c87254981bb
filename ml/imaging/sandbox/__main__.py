"""The child: ``python -m ml.imaging.sandbox PIPE``, started only by ``run_limited``."""

from ml.imaging.sandbox.child import main

main()

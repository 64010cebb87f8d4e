"""``python -m gnn_vpa`` is ``gnn-vpa``."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:  # what `-m` puts first would take the place of libraries
        sys.path.append(sys.path.pop(0))
    from gnn_vpa.cli import main

    main()

"""``python -m gnn_vpa`` is ``gnn-vpa``."""

from gnn_vpa.cli import main

if __name__ == "__main__":
    main()

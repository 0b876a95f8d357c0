"""`python -m tidu` is the command `tidu`."""

from tidu_cli.__main__ import main

if __name__ == "__main__":
    main()

"""`python -m markovia` is the `markovia` command."""

from markovia.cli import main

if __name__ == "__main__":
    main()

"""CSS and JavaScript formatted and linted where only Python is: `python -m tests.lint`, with `--fix` to format."""

"""The console for programs: each button's form and each list, below `api/`, for whoever brings an access token.

Nothing is done or found here in a way of its own: what a button presses is pressed, and what a page asks is asked.
"""

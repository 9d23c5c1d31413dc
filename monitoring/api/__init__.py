"""The console for programs: each action and each list, below `api/`, with an access token.

The API has no logic of its own. It calls the functions that the buttons and pages of the console call.
"""

"""A user app that workers of the release before and of today's run side by side: it keeps to what both can import."""

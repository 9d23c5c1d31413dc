"""The measurements of `manage.py bench`: no-op work through the engine, beside raw RQ, on the configured database."""

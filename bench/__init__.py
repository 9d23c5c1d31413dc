"""What `manage.py bench` runs: no-op work through the engine, beside raw RQ, in one run on the configured database."""

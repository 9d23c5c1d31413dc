"""The declarations of a definition of either kind: its base class, outside ids, migrations and guards."""

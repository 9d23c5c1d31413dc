"""A small app as users write one, under the strictest types; tests/unit/test_types_for_users.py has it checked."""

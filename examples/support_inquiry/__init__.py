"""Answers customers' inquiries, whatever media they come in."""

"""Parts of queries that lists and pages share: counts, conditions, and searches with bounds."""

"""Problems that need a person: the first page, and the counts of the menu."""

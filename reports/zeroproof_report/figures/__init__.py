"""The figures. Each module draws one kind of them from all records of a report."""

"""What people look at: the report of a comparison."""

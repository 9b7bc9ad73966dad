"""What would this request be, had its owner asked as the record says."""

"""What more than one part of Shadowtime imports: events, seams, errors."""

"""What tests share: no module here is a test."""

"""What several tests use: nothing here is a test, and no test module is imported by another."""

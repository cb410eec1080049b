"""What opens over the main screen, asks one thing and closes."""

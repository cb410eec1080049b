"""What one looks at, each file named after what the person sees. They draw and tell; they read no files."""

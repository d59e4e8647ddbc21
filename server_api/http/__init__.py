"""HTTP: the only part that knows Flask. Views parse, call one use case and render."""

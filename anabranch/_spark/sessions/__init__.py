"""What a session is, says and is told: its settings, its folder, its Python, the rows that it keeps."""

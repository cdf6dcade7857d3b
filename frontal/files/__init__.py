"""Files: archives of vectors, atomic writes, declared sizes, versioned pickles."""

"""What turns texts into vectors: the protocol, and one file for each way."""

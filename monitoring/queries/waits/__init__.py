"""The page of waits: what each waiting visit waits for, since when and until when."""

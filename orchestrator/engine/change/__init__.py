"""One change of one locked process: what it decides, settles, starts and writes."""

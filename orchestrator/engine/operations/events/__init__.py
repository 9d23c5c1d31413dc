"""The actions of operators on events: deliver, redeliver, discard and send."""

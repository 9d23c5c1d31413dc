"""Other systems that run steps, each a module of its name with `prepare`, `work` and `send`, in processes of their own.

`REDIS_URL` and `DATABASE_URL` say where, and what they keep there is removed with the measurement. Each is used in the
way its manual has it; of several ways it is the one with the least work a step.
"""

"""Other systems that run steps: a module for each, with `prepare`, `work` and `send`, in processes of their own.

`REDIS_URL` and `DATABASE_URL` say where; the measurement removes what they keep there. Each module follows the manual
of its system; of several ways it takes the one with the least work a step.
"""

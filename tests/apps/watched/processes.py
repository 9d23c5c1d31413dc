"""The workflows: the same step outside of any transaction, and inside the one that stores its result."""

from orchestrator.definition import Workflow, step
from tests.apps.watched.steps import Work, spend


class Watched(Workflow):
    """One step, which may be tried again."""

    Input = Work
    flow = (step(spend),)


class WatchedInside(Workflow):
    """The same step as a part of the commit that stores its result."""

    Input = Work
    flow = (step(spend, transactional=True),)

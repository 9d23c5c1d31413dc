"""The bundled project with its examples, as the type checker looks at it: on a data folder that goes again."""

import tests.environment  # noqa: F401  what it decides has to be decided first
from orchestrator.settings import *  # noqa: F403  that is what it is

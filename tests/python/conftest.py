"""Settings of the whole suite: how long hypothesis searches.

``SATCHEL_HYPOTHESIS`` chooses the profile: ``fixed`` (the default: the same 50 examples on every
run and machine, so that a red run is due to the change under test), ``random`` (50 others each
time) or ``long`` (random, 5,000 each: hours).
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

import servers

# A machine with two busy cores must not fail a test by being slow: no deadline, no speed check.
COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fixed", COMMON, max_examples=50, derandomize=True, database=None)
settings.register_profile("random", COMMON, max_examples=50)
settings.register_profile("long", COMMON, max_examples=5_000)
PROFILE = os.environ.get("SATCHEL_HYPOTHESIS", "fixed")
settings.load_profile(PROFILE)

if PROFILE == "fixed":
    # Values are also drawn from the constants of the modules that happen to be loaded, which
    # depends on the tests that the same process ran before. There is no setting for it.
    nothing = Constants()
    setattr(providers, "_get_local_constants", lambda: nothing)  # noqa: B010 - private


def pytest_sessionfinish() -> None:
    """Ends the servers that tests have started."""
    servers.stop_all()

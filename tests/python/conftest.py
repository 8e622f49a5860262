"""Settings of the whole suite: how long hypothesis searches.

``SATCHEL_HYPOTHESIS`` chooses the profile: ``ci`` (the default where ``CI`` is set: the same
examples on every run), ``dev`` (the default elsewhere: fewer, random) or ``long``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

import servers

# A machine with two busy cores must not fail a test by being slow: no deadline, no speed check.
COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("ci", COMMON, max_examples=200, derandomize=True, database=None)
settings.register_profile("dev", COMMON, max_examples=50)
settings.register_profile("long", COMMON, max_examples=5_000)
settings.load_profile(os.environ.get("SATCHEL_HYPOTHESIS", "ci" if os.environ.get("CI") else "dev"))


def pytest_sessionfinish() -> None:
    """Ends the servers that tests have started."""
    servers.stop_all()

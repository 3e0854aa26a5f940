"""Settings of every test run."""

from hypothesis import HealthCheck, settings

# A busy machine draws slowly; that says nothing about the code.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")

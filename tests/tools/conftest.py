"""Settings for generated cases: a busy machine is no reason to fail, and a failing case is found again."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("tools", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("tools")

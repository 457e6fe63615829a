"""What went wrong in rollouts, and which words could have prevented it."""

from seal.diagnose.profile import Profile, ProfileBuilder, ProfileRow, build_profile
from seal.diagnose.rules import diagnose_rollout

__all__ = ["Profile", "ProfileBuilder", "ProfileRow", "build_profile", "diagnose_rollout"]

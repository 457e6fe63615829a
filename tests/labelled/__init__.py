"""Failed rollouts of local policies, with the fault that a reader named who saw no diagnosis."""

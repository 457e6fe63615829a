"""Results as people read them: comparisons and the HTML report."""

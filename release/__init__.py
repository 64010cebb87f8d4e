"""Is the package ready to be released? ``make release-check``."""

"""Built-in subjects: each module defines PACKAGES, version() and TRAINER."""

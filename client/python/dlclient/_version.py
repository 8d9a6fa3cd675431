"""The version of this package; that of the whole tree (VERSION in the Makefile)."""

__version__ = "0.1.0"

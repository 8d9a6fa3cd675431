"""The version of this package; that of the whole tree (VERSION in the Makefile). What is built has the commit in it,
too."""

__version__ = "0.1.0"

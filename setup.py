"""Packaging entry point; everything it needs is said in setup.cfg."""

from setuptools import setup

setup()

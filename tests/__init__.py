"""Tests of custream."""

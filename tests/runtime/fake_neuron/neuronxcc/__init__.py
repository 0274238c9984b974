# SPDX-License-Identifier: Apache-2.0
"""Stands for the real one: see nki/__init__.py."""

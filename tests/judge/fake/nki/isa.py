# SPDX-License-Identifier: Apache-2.0
"""Nothing is called here: the emulator runs the kernel's text with modules of its own."""

# SPDX-License-Identifier: Apache-2.0
"""`python -m tdsl.explore`: a page of the own machine on which a program is typed, and what the compiler makes of it stands beside it.

_server.py is the server and who may ask it, _look.py asks tdslc and tdsl-run, page.html, page.css and page.js are the page.
"""

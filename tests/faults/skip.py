# SPDX-License-Identifier: BSD-2-Clause
"""A fault that this host cannot inject."""


class Skip(Exception):
    pass

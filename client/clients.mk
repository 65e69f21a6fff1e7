# SPDX-License-Identifier: BSD-2-Clause
# The libraries of languages that are compiled, and their adapters for tests/clients. Each target builds into $(O), and is skipped by name where its tools are
# not here. Nothing of the product depends on them.

CLIENTS :=

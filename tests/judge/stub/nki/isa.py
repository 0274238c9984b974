# SPDX-License-Identifier: Apache-2.0
# Empty on purpose: a name that does not exist here is passed through by the tracer.

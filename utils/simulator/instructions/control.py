"""Registers, barriers and exchange between the cores of a grid."""

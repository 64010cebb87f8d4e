"""
Many machines
=============
"""

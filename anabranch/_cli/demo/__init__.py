"""``anabranch demo``: concurrent writers on real data, and a proof that nothing was lost.

A story told with the product's own public parts; nothing in the library depends on it.
"""
